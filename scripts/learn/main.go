// Command learn goes through the exercises with a reader: it copies the start of one to a folder that git ignores, checks
// the code there each time it is saved, and remembers what is done. `make learn` runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"

	"example.com/workbook/shared/config"
)

// Exit codes of every command.
const (
	exitDone   = 0
	exitNotYet = 1
	exitCannot = 2
)

func main() {
	os.Exit(process(os.Args[1:], newPool))
}

// process is the program with the checker that newChecker makes.
func process(args []string, newChecker func(root string) checker) int {
	// Someone who is registered for it gets an error from writing to a pipe that was closed, as by head, and can end the
	// API servers. Otherwise the process would be killed.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	code, err := run(ctx, colorprofile.NewWriter(os.Stdout, os.Environ()), args, newChecker)
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "learn: interrupted")
		return exitCannot
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "learn:", err)
		return exitCannot
	}
	return code
}

func run(ctx context.Context, out io.Writer, args []string, newChecker func(root string) checker) (code int, err error) {
	if len(args) > 0 && slices.Contains([]string{"help", "-h", "--help"}, args[0]) {
		_, err := io.WriteString(out, usage)
		return exitDone, err
	}
	root, err := config.Repo()
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return exitCannot, err
	}
	r, err := newRunner(root, newChecker(root))
	if err != nil {
		return exitCannot, err
	}
	defer func() { err = errors.Join(err, closeAloud(r)) }()
	c := &commands{runner: r, out: out, log: os.Stderr, terminal: interactive()}
	return c.run(ctx, args)
}

// closeAloud says what the reader waits for, if it takes a while.
func closeAloud(r *runner) error {
	timer := time.AfterFunc(time.Second, func() { fmt.Fprintln(os.Stderr, "==> the check ends, and the API servers stop") })
	defer timer.Stop()
	return r.close()
}

// interactive reports whether there is a terminal that can show a screen and has a keyboard.
func interactive() bool {
	return term.IsTerminal(os.Stdin.Fd()) && term.IsTerminal(os.Stdout.Fd()) && os.Getenv("TERM") != "dumb"
}
