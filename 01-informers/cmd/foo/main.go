// Foo is the program in a Foo's pods. It waits until it is told to end: a Foo is about the Deployment, not
// about what runs in it.
package main

import (
	"context"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	<-ctx.Done()
}
