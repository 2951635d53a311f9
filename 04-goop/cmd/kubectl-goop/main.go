// Kubectl-goop runs a command on the nodes of a cluster and shows its output. As a kubectl plugin it is called `kubectl
// goop`: see `kubectl goop --help`.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	// Authentication plugins, for kubeconfigs that name one.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"example.com/workbook/04-goop/internal/plugin"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(plugin.Main(os.Args[1:], streams, plugin.Signals()))
}
