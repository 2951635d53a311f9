package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/operator"
)

// attachment is what the suite's first process, which did the set-up, tells the others.
type attachment struct {
	Kind      cluster.Kind  `json:"kind"`
	Name      string        `json:"name"`
	Images    deploy.Images `json:"images"`
	Artifacts string        `json:"artifacts"`
	Prepared  string        `json:"prepared"`
}

// attachment is that of this environment, as text.
func (e *Env) attachment() ([]byte, error) {
	return json.Marshal(attachment{e.Cluster.Kind(), e.Cluster.Name(), e.Images, e.Artifacts, e.Prepared})
}

// attach returns the environment that another process has set up. It ends nothing when it is closed.
func attach(ctx context.Context, stage Stage, text []byte) (*Env, error) {
	var to attachment
	if err := json.Unmarshal(text, &to); err != nil {
		return nil, fmt.Errorf("reading what the suite's first process set up: %w", err)
	}
	env := &Env{Stage: stage, out: os.Stdout, Images: to.Images, Artifacts: to.Artifacts, Prepared: to.Prepared}
	var err error
	if env.Cluster, err = cluster.Find(ctx, cluster.Options{Kind: to.Kind, Name: to.Name}); err != nil {
		return nil, err
	}
	if err := env.setupClient(ctx); err != nil {
		return nil, err
	}
	if env.Cluster.RunsContainers() {
		env.Operator, err = operator.InCluster(env.Cluster, stage.Dir, stage.Overlay)
	} else {
		env.Operator, err = operator.Elsewhere(stage.Dir, stage.Overlay, env.operatorLog())
	}
	return env, err
}
