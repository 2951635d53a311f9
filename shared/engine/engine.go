// Package engine finds the container engine of this machine, if one answers.
package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// ErrNone says that no container engine answers, and what to do about it.
var ErrNone = errors.New("no container engine answers on this machine: " +
	"run `make engine` (Debian or Ubuntu, as root), start Docker Desktop or your own engine, " +
	"or go on without one with CLUSTER=embedded")

// ErrDenied says that an engine is there which this user may not use, and what to do about it.
var ErrDenied = errors.New("a container engine is there, but this user may not use it: " +
	"add yourself to its group (`sudo usermod -aG docker $USER`, then log in again), " +
	"or go on without one with CLUSTER=embedded")

// patience bounds the question to one engine. A daemon that is up answers in milliseconds; a client
// whose DOCKER_HOST points at an unreachable machine would otherwise hang for minutes.
const patience = 10 * time.Second

// probes are the engines in order of preference, each with a command that succeeds only if the
// engine itself answers: `docker --version` would be content with a client.
var probes = []struct {
	name string
	args []string
}{
	{"docker", []string{"version", "--format", "{{.Server.Version}}"}},
	{"podman", []string{"info", "--format", "{{.Version.Version}}"}},
}

// Engine is a container engine that answers.
type Engine struct {
	// Name is the client to call, "docker" or "podman", and also what kind calls the provider.
	Name string
}

// denied is what clients say of a socket that is for others; of files of their own they say less.
var denied = regexp.MustCompile(`(?i)(permission denied.*connect|connect.*permission denied)`)

// Find returns the first engine that answers: docker, else podman. It fails with ErrNone if there is
// none, with ErrDenied if there is one for other users, both with what the clients say, and with the
// context's error if that ends first.
func Find(ctx context.Context) (*Engine, error) {
	none := ErrNone
	var said []string
	for _, probe := range probes {
		err := ask(ctx, probe.name, probe.args...)
		if err == nil {
			return &Engine{Name: probe.name}, nil
		}
		if errors.Is(err, exec.ErrNotFound) {
			continue
		}
		said = append(said, "\n  "+probe.name+": "+err.Error())
		if denied.MatchString(err.Error()) {
			none = ErrDenied
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("%w%s", none, strings.Join(said, ""))
}

// ask fails with what the client says if its engine does not answer.
func ask(ctx context.Context, client string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, client, args...)
	// Children of the client may keep its output open after it was killed.
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if said := strings.TrimSpace(stderr.String()); err != nil && said != "" {
		return errors.New(said)
	}
	return err
}
