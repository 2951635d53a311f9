package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/step"
)

// operatorImage is what kubebuilder's configurations call the operator's image; its target in the
// Dockerfile is manager, the name of the program. Every other image has its target's name.
const operatorImage = "controller"

// ForStage returns a reference for each image of the stage. targets maps the images' names in the
// configuration to targets of the Dockerfile; nil means what Targets finds. Where containers run,
// the images are built and loaded into every node that lacks them; elsewhere nothing is built, and
// the references are only names. An image that this machine has no program for is the one that the
// configuration names: the engine's, or pulled.
func ForStage(ctx context.Context, out io.Writer, c cluster.Cluster, stageDir string, targets map[string]string) (deploy.Images, error) {
	images, err := made(ctx, out, c, stageDir, targets)
	if err != nil || !c.RunsContainers() {
		return images, err
	}
	err = step.Run(ctx, out, "loading the images into the nodes that lack them", func(ctx context.Context) error {
		_, err := c.LoadImages(ctx, slices.Collect(maps.Values(images))...)
		return err
	})
	return images, err
}

// ForRegistry is ForStage for nodes that pull: the images are pushed to a registry, under names that
// begin with its own, such as k3d-devregistry:5000, and are loaded nowhere.
func ForRegistry(ctx context.Context, out io.Writer, c cluster.Cluster, stageDir string, targets map[string]string, registry string) (deploy.Images, error) {
	prefix, err := registryPrefix(registry)
	if err != nil {
		return nil, err
	}
	images, err := made(ctx, out, c, stageDir, targets)
	if err != nil {
		return nil, err
	}
	pushed := deploy.Images{}
	for name, ref := range images {
		pushed[name] = prefix + "/" + lastPart(ref)
	}
	if !c.RunsContainers() {
		return pushed, nil
	}
	err = step.Run(ctx, out, "pushing the images to "+prefix, func(ctx context.Context) error {
		for name, ref := range images {
			if err := push(ctx, ref, pushed[name]); err != nil {
				return err
			}
		}
		return nil
	})
	return pushed, err
}

// made has the engine of this machine have the images of a stage.
func made(ctx context.Context, out io.Writer, c cluster.Cluster, stageDir string, targets map[string]string) (deploy.Images, error) {
	stageDir, err := filepath.Abs(stageDir)
	if err != nil {
		return nil, fmt.Errorf("finding the stage: %w", err)
	}
	if targets == nil {
		if targets, err = Targets(stageDir); err != nil {
			return nil, err
		}
	}
	images := deploy.Images{}
	for name, target := range targets {
		if !c.RunsContainers() {
			images[name] = repository(stageDir, target) + ":not-built"
			continue
		}
		ref, err := Build(ctx, out, stageDir, target)
		if errors.Is(err, errNoProgram) {
			ref, err = substitute(ctx, out, stageDir, name, target, err)
		}
		if err != nil {
			return nil, err
		}
		images[name] = ref
	}
	return images, nil
}

// Targets maps the images that a stage's configuration lists to the targets of its Dockerfile that
// make them. An image that no target makes is left out.
func Targets(stageDir string) (map[string]string, error) {
	refs, err := deploy.ImageRefs(stageDir)
	if err != nil {
		return nil, err
	}
	known, err := readTargets(stageDir)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name := range refs {
		want := name
		if name == operatorImage {
			want = manager
		}
		if slices.ContainsFunc(known, func(t target) bool { return t.name == want }) {
			out[name] = want
		}
	}
	return out, nil
}
