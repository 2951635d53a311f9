package image

import (
	"context"
	"io"
	"strings"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/engine"
)

// LoadAs builds a target of the stage's Dockerfile and loads it into every node that has no image of the name ref. It is for
// clusters whose nodes run containers.
func LoadAs(ctx context.Context, out io.Writer, c cluster.Cluster, stageDir, target, ref string) error {
	built, err := Build(ctx, out, stageDir, target)
	if err != nil {
		return err
	}
	found, err := engine.Find(ctx)
	if err != nil {
		return err
	}
	ref = fullName(ref)
	if err := command(ctx, found, "tag", built, ref); err != nil {
		return err
	}
	return load(ctx, out, c, ref)
}

// fullName is how a kubelet reads a name without a registry. An engine may read it otherwise: podman's are of localhost.
func fullName(ref string) string {
	if strings.Contains(ref, "/") {
		return ref
	}
	return "docker.io/library/" + ref
}
