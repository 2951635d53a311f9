// Package engine finds the container engine of this machine, if one answers.
package engine

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

// ErrNone says that no container engine answers, and what to do about it.
var ErrNone = errors.New("no container engine answers on this machine: " +
	"run `make engine` (Debian or Ubuntu, as root), start Docker Desktop or your own engine, " +
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

// Find returns the first engine that answers: docker, else podman. It fails with ErrNone if there is
// none, and with the context's error if that ends first.
func Find(ctx context.Context) (*Engine, error) {
	for _, probe := range probes {
		if answers(ctx, probe.name, probe.args...) {
			return &Engine{Name: probe.name}, nil
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, ErrNone
}

func answers(ctx context.Context, client string, args ...string) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, client, args...)
	// Children of the client may keep its output open after it was killed.
	cmd.WaitDelay = time.Second
	return cmd.Run() == nil
}
