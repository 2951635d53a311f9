package exitcode

import (
	"context"
	"errors"
	"sync"
)

// endless is a context that ends when the check says so. As that of signal.NotifyContext, it has a cause of its own if it is cancelled.
type endless struct {
	context.Context
	interrupt context.CancelCauseFunc
	once      sync.Once
	done      chan struct{}
	err       error
}

func newEndless() *endless {
	ctx, interrupt := context.WithCancelCause(context.Background())
	return &endless{Context: ctx, interrupt: interrupt, done: make(chan struct{})}
}

func (e *endless) Done() <-chan struct{} { return e.done }

func (e *endless) Err() error {
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}

func (e *endless) end(err error) {
	e.once.Do(func() {
		e.err = err
		if errors.Is(err, context.Canceled) {
			e.interrupt(errors.New("interrupt signal received"))
		}
		close(e.done)
	})
}
