// Kubectl-goop runs a command on the nodes of a cluster and shows what it writes. As a plugin of kubectl it is
// called `kubectl goop`; `kubectl goop --help` tells more.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	// The ways to log in that a kubeconfig may ask for and that are no program of their own.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"example.com/workbook/04-goop/internal/plugin"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// Under nohup the end of the terminal is to be survived.
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	// Without this a reader that leaves, as in `kubectl goop run … | head`, would kill the program before it has
	// cancelled the work. With it the write fails, which is dealt with as any failed write.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(plugin.Main(os.Args[1:], streams, signals))
}
