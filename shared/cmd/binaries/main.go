// Command binaries provides the programs named on its command line and prints the folder that holds
// them. Progress goes to standard error.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"example.com/workbook/shared/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := binaries.Ensure(ctx, os.Stderr, os.Args[1:]...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "binaries:", err)
		stop()
		os.Exit(1)
	}
	fmt.Println(dir)
}
