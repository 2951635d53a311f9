// Package step tells the reader what a long operation is doing and how long it took.
package step

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Run prints what is about to be done, does it, and prints how long it took. The error is fn's own.
func Run(ctx context.Context, out io.Writer, what string, fn func(context.Context) error) error {
	start := time.Now()
	fmt.Fprintf(out, "==> %s\n", what)
	err := fn(ctx)
	took := time.Since(start).Round(100 * time.Millisecond)
	if err != nil {
		fmt.Fprintf(out, "==> %s: failed after %s\n", what, took)
		return err
	}
	fmt.Fprintf(out, "==> %s: took %s\n", what, took)
	return nil
}
