package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
)

var errElsewhere = errors.New("the operator is a process of the suite's first process: a spec that does more than look at it is Serial")

// elsewhere is an operator that another process started as a process of its own. What starts and ends it fails.
type elsewhere struct {
	*manifest
	log string
}

// Elsewhere returns a handle for the operator of a stage that another process runs, from config/OVERLAY, and has write
// its log to a file.
func Elsewhere(stageDir, overlay, log string) (Operator, error) {
	m, err := readManifest(stageDir, overlay, nil)
	if err != nil {
		return nil, err
	}
	return elsewhere{m, log}, nil
}

func (e elsewhere) User() string           { return e.user() }
func (e elsewhere) Namespace() string      { return e.deployment.Namespace }
func (e elsewhere) ServiceAccount() string { return e.serviceAccount() }

// Logs is the log of the first replica.
func (e elsewhere) Logs(context.Context) (string, error) {
	text, err := os.ReadFile(e.log)
	if err != nil {
		return "", fmt.Errorf("reading the operator's log: %w", err)
	}
	return string(text), nil
}

func (elsewhere) Restart(context.Context) error              { return errElsewhere }
func (elsewhere) Kill(context.Context) error                 { return errElsewhere }
func (elsewhere) KillLeader(context.Context) (string, error) { return "", errElsewhere }
func (elsewhere) Scale(context.Context, int) error           { return errElsewhere }
func (elsewhere) Stop(context.Context) error                 { return errElsewhere }
func (elsewhere) Start(context.Context) error                { return errElsewhere }

func (elsewhere) Metrics(context.Context, string) (int, string, error) {
	return 0, "", errElsewhere
}
