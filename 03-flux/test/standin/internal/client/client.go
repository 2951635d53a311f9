// Package client is what the entrypoint and users call: `flux run`, `flux getattr`, `flux resource list` and
// `flux config` of the stand-in.
package client

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"example.com/workbook/03-flux/test/standin/internal/wire"
	"example.com/workbook/03-flux/test/standin/internal/words"
)

// defaultURI is where a client looks if nobody tells it.
const defaultURI = "local:///run/flux/local"

// connect reaches the broker that FLUX_URI names.
func connect() (*wire.Conn, error) {
	uri, isSet := os.LookupEnv("FLUX_URI")
	if !isSet {
		uri = defaultURI
	}
	path, isLocal := strings.CutPrefix(uri, "local://")
	if !isLocal {
		return nil, words.Errorf("Unable to connect to Flux: Unable to find connector name '%s'", strings.SplitN(uri, ":", 2)[0])
	}
	conn, err := net.Dial("unix", path) //nolint:noctx // a local socket answers at once, or not at all
	if err != nil {
		return nil, words.Errorf("Unable to connect to Flux: broker socket %s was not found", path)
	}
	return wire.New(conn), nil
}

// GetAttribute is `flux getattr NAME`. It returns the exit code.
func GetAttribute(args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, "Usage: flux getattr NAME")
		return 1
	}
	return ask("flux-getattr", wire.Message{Type: wire.Get, Text: args[0]}, stdout, stderr)
}

// Resource is `flux resource list`. It returns the exit code.
func Resource(args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 || args[0] != "list" {
		fmt.Fprintln(stderr, "Usage: flux resource list")
		return 1
	}
	return ask("flux-resource", wire.Message{Type: wire.List}, stdout, stderr)
}

// rc1 is the start-up of a broker that is not told another: here there is nothing to do.
const rc1 = "true"

// Config is `flux config builtin rc1_path`. It returns the exit code.
func Config(args []string, stdout, stderr io.Writer) int {
	if len(args) != 2 || args[0] != "builtin" || args[1] != "rc1_path" {
		fmt.Fprintln(stderr, "Usage: flux config builtin rc1_path")
		return 1
	}
	fmt.Fprintln(stdout, rc1)
	return 0
}

// ask sends a question and prints the answer.
func ask(program string, question wire.Message, stdout, stderr io.Writer) int {
	answer, err := func() (wire.Message, error) {
		broker, err := connect()
		if err != nil {
			return wire.Message{}, err
		}
		defer broker.Close()
		if err := broker.Send(question); err != nil {
			return wire.Message{}, err
		}
		return broker.Receive()
	}()
	if err == nil && answer.Code != 0 {
		err = errors.New(answer.Text)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", program, err)
		return 1
	}
	fmt.Fprintln(stdout, strings.TrimSuffix(answer.Text, "\n"))
	return 0
}
