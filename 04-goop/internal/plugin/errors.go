package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit codes, beside those of workers. They are those of timeout(1) and of the shells.
const (
	exitFailed   = 1
	exitUsage    = 2
	exitTimedOut = 124
	exitSignal   = 128
)

// exitError ends the program with a code. All there is to say has been said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is a command line that makes no sense.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// signalError is why a context ended: a signal.
type signalError struct{ os.Signal }

func (e signalError) Error() string { return e.String() }

// code is what a shell would call it: 130 for Ctrl-C.
func (e signalError) code() int {
	if number, ok := e.Signal.(syscall.Signal); ok {
		return exitSignal + int(number)
	}
	return exitSignal + int(syscall.SIGINT)
}

// outputError is that nobody takes what is printed: a full disk, or a reader that left.
type outputError struct{ error }

func (e outputError) Unwrap() error { return e.error }

var (
	errTimedOut = errors.New("timed out")
	errRefused  = errors.New("refused")
	errDeleted  = errors.New("deleted")
)

// exitCode says what went wrong, if that is still to be said, and what the program ends with.
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

// explained says what an error of the API server means here, where its own words do not.
func explained(err error) error {
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) && apierrors.IsNotFound(err) {
		if details := status.Status().Details; details == nil || details.Name == "" {
			return fmt.Errorf("the cluster does not know Goops: the operator is not deployed there (%w)", err)
		}
	}
	return err
}
