package cluster

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

// LoadImages saves the images that a node lacks into one archive and imports it into all of those
// nodes at the same time. A node has an image if it knows the reference: those of the harness carry a
// hash of what is in the image.
func (k *kindCluster) LoadImages(ctx context.Context, refs ...string) (bool, error) {
	all, err := k.machines()
	if err != nil {
		return false, err
	}
	missing := map[string]bool{}
	var lacking []nodes.Node
	for _, node := range all {
		known, err := imagesOf(ctx, node)
		if err != nil {
			return false, err
		}
		lacks := false
		for _, ref := range refs {
			if !known[ref] {
				lacks, missing[ref] = true, true
			}
		}
		if lacks {
			lacking = append(lacking, node)
		}
	}
	if len(lacking) == 0 {
		return false, nil
	}

	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return false, fmt.Errorf("creating a folder for images: %w", err)
	}
	defer os.RemoveAll(dir)
	archive := filepath.Join(dir, "images.tar")
	args := []string{"save", "--output", archive}
	if k.engine.Name == "podman" {
		args = append(args, "--multi-image-archive")
	}
	args = append(args, slices.Sorted(maps.Keys(missing))...)
	if output, err := exec.CommandContext(ctx, k.engine.Name, args...).CombinedOutput(); err != nil {
		return false, fmt.Errorf("saving images: %w: %s", err, strings.TrimSpace(string(output)))
	}
	var group errgroup.Group
	for _, node := range lacking {
		group.Go(func() error { return importArchive(node, archive) })
	}
	return true, group.Wait()
}

// imagesOf asks containerd, and not crictl as kind does: a node image built here has no crictl.
func imagesOf(ctx context.Context, node nodes.Node) (map[string]bool, error) {
	var stdout bytes.Buffer
	if err := node.CommandContext(ctx, "ctr", "--namespace=k8s.io", "images", "list", "--quiet").SetStdout(&stdout).Run(); err != nil {
		return nil, fmt.Errorf("listing the images of %s: %w", node, err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(stdout.String()) {
		known[strings.TrimSpace(line)] = true
	}
	return known, nil
}

func importArchive(node nodes.Node, archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("loading images: %w", err)
	}
	defer f.Close()
	if err := nodeutils.LoadImageArchive(node, f); err != nil {
		return fmt.Errorf("loading images into %s: %w", node, err)
	}
	return nil
}
