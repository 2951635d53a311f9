package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/config"
	"example.com/workbook/shared/engine"
	"example.com/workbook/shared/step"
)

// nodeImageArg is the build argument that a Dockerfile of ForTest may ask for. The image of kind's nodes is the only
// one that is there wherever pods run here: a shell and tools can come from it where nothing can be pulled.
const nodeImageArg = "NODE_IMAGE"

// ForTest returns a reference for an image that no configuration lists, because only specs use it. dir has the shape
// of a stage: a Dockerfile with the target, and cmd/TARGET. A Dockerfile that says "ARG NODE_IMAGE" is given the
// image of kind's nodes. Where containers run, the image is built and loaded into every node that lacks it; elsewhere
// nothing is built, and the reference is only a name.
func ForTest(ctx context.Context, out io.Writer, c cluster.Cluster, dir, target string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the image's folder: %w", err)
	}
	if !c.RunsContainers() {
		return repository(dir, target) + ":not-built", nil
	}
	var buildArgs []string
	wants, err := wantsNodeImage(dir)
	if err != nil {
		return "", err
	}
	if wants {
		node, err := cluster.NodeImage(ctx, out)
		if err != nil {
			return "", err
		}
		buildArgs = append(buildArgs, nodeImageArg+"="+node)
	}
	ref, err := Build(ctx, out, dir, target, buildArgs...)
	if err != nil {
		return "", err
	}
	return ref, load(ctx, out, c, ref)
}

func wantsNodeImage(dir string) (bool, error) {
	text, err := os.ReadFile(filepath.Join(dir, "Dockerfile"))
	if err != nil {
		return false, fmt.Errorf("reading the Dockerfile: %w", err)
	}
	for line := range bytes.Lines(text) {
		if strings.Join(strings.Fields(string(line)), " ") == "ARG "+nodeImageArg {
			return true, nil
		}
	}
	return false, nil
}

func load(ctx context.Context, out io.Writer, c cluster.Cluster, ref string) error {
	return step.Run(ctx, out, "loading "+path.Base(ref)+" into the nodes that lack it", func(ctx context.Context) error {
		_, err := c.LoadImages(ctx, ref)
		return err
	})
}

// Given returns the name by which the nodes have an image that was not built here. If the engine has it, it is
// loaded into them, under a name that tells its content: the one it goes by may mean another tomorrow, and a node
// that knows a name does not look again. If not, the nodes are left to pull it, and the name stays. Where no
// containers run, so it does too.
func Given(ctx context.Context, out io.Writer, c cluster.Cluster, ref string) (string, error) {
	if !c.RunsContainers() {
		return ref, nil
	}
	found, err := engine.Find(ctx)
	if err != nil {
		return "", err
	}
	if _, err := use(); err != nil {
		return "", err
	}
	id, err := run(ctx, found.Name, "image", "inspect", "--format", "{{.Id}}", ref)
	if err != nil {
		fmt.Fprintf(out, "==> %s has no image %s: the nodes pull it\n", found.Name, ref)
		return ref, nil //nolint:nilerr // that the engine lacks it is an answer
	}
	own := fmt.Sprintf("example.com/%s/given:%s", config.Project(), short(id))
	if _, err := run(ctx, found.Name, "tag", ref, own); err != nil {
		return "", fmt.Errorf("naming %s: %w", ref, err)
	}
	prune(ctx, found, own)
	return own, load(ctx, out, c, own)
}
