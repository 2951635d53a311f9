// Command foo is the program in a Foo's pods. It waits for SIGTERM: a Foo is about the Deployment, not about what runs in its
// pods.
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
