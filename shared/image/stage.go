package image

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
// the references are only names.
func ForStage(ctx context.Context, out io.Writer, c cluster.Cluster, stageDir string, targets map[string]string) (deploy.Images, error) {
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
		if images[name], err = Build(ctx, out, stageDir, target); err != nil {
			return nil, err
		}
	}
	if !c.RunsContainers() {
		return images, nil
	}
	err = step.Run(ctx, out, "loading the images into the nodes that lack them", func(ctx context.Context) error {
		_, err := c.LoadImages(ctx, slices.Collect(maps.Values(images))...)
		return err
	})
	return images, err
}

// Targets maps the images that a stage's configuration lists to the targets of its Dockerfile that
// make them. An image that no target makes is left out.
func Targets(stageDir string) (map[string]string, error) {
	names, err := deploy.ImageNames(stageDir)
	if err != nil {
		return nil, err
	}
	known, err := dockerfileTargets(filepath.Join(stageDir, "Dockerfile"))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, name := range names {
		target := name
		if name == operatorImage {
			target = manager
		}
		if slices.Contains(known, target) {
			out[name] = target
		}
	}
	return out, nil
}

// dockerfileTargets returns the names after AS in the FROM lines.
func dockerfileTargets(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the Dockerfile: %w", err)
	}
	defer f.Close()
	var out []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) >= 4 && strings.EqualFold(words[0], "FROM") && strings.EqualFold(words[len(words)-2], "AS") {
			out = append(out, words[len(words)-1])
		}
	}
	return out, nil
}
