// Flux is a stand-in for the program of the same name, and is no Flux. It accepts the command lines that the operator's
// entrypoint uses, and behaves as a real flux does there. With it, tests can check what the operator passes to a broker
// if no image with Flux is available.
package main

import (
	"fmt"
	"os"
	"time"

	"example.com/workbook/03-flux/test/standin/internal/broker"
	"example.com/workbook/03-flux/test/standin/internal/client"
)

const usage = `Usage: flux COMMAND ARGS, where COMMAND is one of

  broker [-c FILE] [-S NAME=VALUE]... [PROGRAM ARGS...]
  run [-N NODES] [-n TASKS] [-o OPTION]... [--] PROGRAM [ARGS...]
  getattr NAME
  resource list
  config builtin rc1_path

This is the stand-in of a test, and no Flux.
`

func main() {
	os.Exit(run(os.Args[1:]))
}

// run runs a command; it returns the exit code.
func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return 1
	}
	switch command, rest := args[0], args[1:]; command {
	case "broker":
		return broker.Run(rest, os.Stderr, time.Now)
	case "run":
		return client.Run(rest, os.Stdout, os.Stderr)
	case "getattr":
		return client.GetAttribute(rest, os.Stdout, os.Stderr)
	case "resource":
		return client.Resource(rest, os.Stdout, os.Stderr)
	case "config":
		return client.Config(rest, os.Stdout, os.Stderr)
	default:
		fmt.Fprintf(os.Stderr, "flux: `%s' is not a command of the stand-in\n", command)
		return 1
	}
}
