// Command weekend puts the solution of a step of Lolcow in a weekend into the project of a reader. Readers call it by
// scripts/my-lolcow.sh adopt.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"example.com/workbook/02-lolcow/exercises/part0"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "weekend:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: weekend STEP DIR")
	}
	step, dir := args[0], args[1]
	kept, err := part0.Adopt(ctx, dir, step, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the solution of %s is in %s\n", step, dir)
	if kept != "" {
		fmt.Fprintf(out, "your files are in %s\n", kept)
	}
	return nil
}
