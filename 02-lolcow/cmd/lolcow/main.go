// Lolcow prints a cow that says the greeting given to it, and then serves that
// cow over HTTP, until it gets SIGTERM or SIGINT.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"

	"example.com/workbook/02-lolcow/internal/cow"
	"example.com/workbook/02-lolcow/internal/web"
)

const usage = `Usage: lolcow [--help] [--] [greeting words...]

Prints a cow that says the greeting, then serves it over HTTP until it is
stopped. Without a greeting the cow says a fortune.

--help (or -h) counts only if it is the only argument, and a first -- is
dropped. Anything else is greeting, even if it begins with a dash:

  lolcow Oh my gosh, I am a cow in a container!
  lolcow -- --help

Environment:
  PORT      the port to serve on, 8080 if unset; with 0 the system picks one
  NO_COLOR  if it is set, the cow has no colour on a terminal either
`

const (
	exitFailed = 1 // could not serve
	exitUsage  = 2 // told something that makes no sense
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program; it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		fmt.Fprint(stdout, usage)
		return 0
	}
	port, err := parsePort(os.Getenv("PORT"))
	if err != nil {
		fmt.Fprintf(stderr, "lolcow: %v\n", err)
		return exitUsage
	}

	said := greeting(args)
	if said == "" {
		said = cow.Fortune(rand.IntN)
	}
	say := cow.Say
	if colourful(stdout) {
		say = cow.SayInColour
	}
	fmt.Fprint(stdout, say(said))

	log := slog.New(slog.NewTextHandler(stderr, nil))
	if err := serve(said, port, log); err != nil {
		log.Error("stopped", "error", err)
		return exitFailed
	}
	log.Info("stopped")
	return 0
}

// serve serves the greeting until the first signal. Before it begins to end, it
// gives the signals back: a second one kills the program at once.
func serve(said string, port int, log *slog.Logger) error {
	signalled, giveBack := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer giveBack()
	ctx, end := context.WithCancel(context.WithoutCancel(signalled))
	defer end()
	context.AfterFunc(signalled, func() {
		giveBack()
		end()
	})

	site, err := web.NewSite(said, log)
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	log.Info("serving", "address", listener.Addr().String())
	return web.Serve(ctx, listener, site, web.DefaultLimits(), log)
}

// greeting joins the arguments to what the cow says. One leading "--" marks the
// end of the options, as everywhere; the rest is text, whatever it looks like.
func greeting(args []string) string {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	return strings.Join(args, " ")
}

// parsePort reads the PORT variable; empty means 8080.
func parsePort(value string) (int, error) {
	if value == "" {
		return 8080, nil
	}
	port, err := strconv.ParseUint(value, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("PORT is %q, want a number from 0 to 65535", value)
	}
	return int(port), nil
}

// colourful reports whether out is a terminal whose owner wants colour.
// https://no-color.org: NO_COLOR counts unless it is empty.
func colourful(out io.Writer) bool {
	file, isFile := out.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""
}
