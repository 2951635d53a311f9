// Package client implements the commands of the stand-in that the entrypoint and users call: `flux run`, `flux
// getattr`, `flux resource list` and `flux config`.
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

// defaultURI is the socket that a client uses if FLUX_URI is not set.
const defaultURI = "local:///run/flux/local"

// connect connects to the broker that FLUX_URI names.
func connect() (*wire.Conn, error) {
	uri, isSet := os.LookupEnv("FLUX_URI")
	if !isSet {
		uri = defaultURI
	}
	path, isLocal := strings.CutPrefix(uri, "local://")
	if !isLocal {
		return nil, words.Errorf("Unable to connect to Flux: Unable to find connector name '%s'", strings.SplitN(uri, ":", 2)[0])
	}
	conn, err := net.Dial("unix", path) //nolint:noctx // connecting to a local socket does not block
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

// rc1 is the default start-up of a broker: the stand-in has nothing to do.
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

// ask sends a request and prints the response.
func ask(program string, question wire.Message, stdout, stderr io.Writer) int {
	response, err := func() (wire.Message, error) {
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
	if err == nil && response.Code != 0 {
		err = errors.New(response.Text)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", program, err)
		return 1
	}
	fmt.Fprintln(stdout, strings.TrimSuffix(response.Text, "\n"))
	return 0
}
