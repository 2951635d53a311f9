package plugin

import (
	"os"
	"os/signal"
	"syscall"
)

// Signals returns a channel of the signals that end the program, for Main. Without it they would kill the program before
// it has cancelled the work. Go programs ignore other signals, such as SIGUSR1, by default.
func Signals() <-chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGQUIT)
	// Under nohup the program must continue when the terminal is closed, and a job that a script has put into the background
	// when the user presses Ctrl-C: that is meant for the program in the foreground.
	for _, number := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(number) {
			signal.Notify(signals, number)
		}
	}
	// If the reader exits, as in `kubectl goop run … | head`, a write fails, which is handled like any failed write.
	// Ignoring the signal would have the same effect, but authentication plugins would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return signals
}
