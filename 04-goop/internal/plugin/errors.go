package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit codes of the program, which are those of timeout(1) and of shells. Other exit codes are those of workers.
const (
	exitFailed   = 1
	exitUsage    = 2
	exitTimedOut = 124
	exitSignal   = 128
)

// exitError ends the program with an exit code. Everything else was printed before.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is an invalid command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// signalError is the cause of a context that a signal has ended.
type signalError struct{ os.Signal }

func (e signalError) Error() string { return e.String() }

// code is the exit code that a shell uses: 130 for Ctrl-C.
func (e signalError) code() int {
	if number, ok := e.Signal.(syscall.Signal); ok {
		return exitSignal + int(number)
	}
	return exitSignal + int(syscall.SIGINT)
}

// outputError means that output cannot be written: the disk is full, or the reader has exited.
type outputError struct{ error }

func (e outputError) Unwrap() error { return e.error }

// connectionError means that the API server did not respond, or that its response broke off.
type connectionError struct{ error }

func (e connectionError) Unwrap() error { return e.error }

var (
	errTimedOut = errors.New("timed out")
	errRejected = errors.New("rejected")
	errDeleted  = errors.New("deleted")
)

// exitCode prints the error, if it was not printed before, and returns the exit code.
func (a *app) exitCode(ctx context.Context, err error) int {
	var (
		exit     exitError
		usage    usageError
		signal   signalError
		requests = context.Cause(ctx)
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage):
		a.console.fail("%v", err)
		a.console.print("See '%s --help'.", name)
		return exitUsage
	case errors.As(requests, &signal):
		return signal.code()
	default:
		a.console.fail("%v", err)
		return exitFailed
	}
}

// explained adds an explanation to errors of the API server whose own message is not clear.
func explained(err error) error {
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) && apierrors.IsNotFound(err) {
		if details := status.Status().Details; details == nil || details.Name == "" {
			return fmt.Errorf("the cluster does not know Goops: the operator is not deployed there (%w)", err)
		}
	}
	return err
}
