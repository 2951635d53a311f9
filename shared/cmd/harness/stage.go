package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/config"
	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/engine"
	"example.com/workbook/shared/image"
)

// stage is what the commands that work on one stage are told.
type stage struct {
	dir      string
	overlay  string
	images   []string
	registry string
	loaded   bool
}

func (s *stage) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.dir, "stage", "", "the stage's folder, from the repository's root or absolute")
	_ = cmd.MarkFlagRequired("stage")
}

func (s *stage) overlayFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.overlay, "overlay", deploy.DefaultOverlay, "the folder below the stage's config to use: a variant of its operator")
}

func (s *stage) imageFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.images, "image", nil,
		"NAME=REF uses an image that exists; what is not named is found; repeatable")
	cmd.Flags().StringVar(&s.registry, "registry", "",
		"HOST:PORT: push the images that are built there, for the cluster to pull, instead of loading them into the nodes")
	cmd.Flags().BoolVar(&s.loaded, "loaded", false,
		"build and load nothing: the cluster has the images that the configuration and --image name, or pulls them")
}

// open checks the stage's folder. Makefiles call the harness from its own folder, so a relative
// path counts from the repository's root.
func (s *stage) open() error {
	if !filepath.IsAbs(s.dir) {
		repo, err := config.Repo()
		if err != nil {
			return err
		}
		s.dir = filepath.Join(repo, s.dir)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "config")); err != nil {
		return fmt.Errorf("%s is not a stage: it has no folder config", s.dir)
	}
	return nil
}

// numbered are the folders of stages. A stage that was copied out is the root of its own repository, and has no number.
var numbered = regexp.MustCompile(`^0(\d)-`)

// makes is what a user types, at the root of the repository, for a target of the stage.
func (s *stage) makes(target string) string {
	if number := numbered.FindStringSubmatch(filepath.Base(s.dir)); number != nil {
		return "make stage-" + number[1] + " " + target
	}
	return "make " + target
}

// resolve returns the images to use: those that the flags name, and the stage's own, freshly built.
func (s *stage) resolve(ctx context.Context, cmd *cobra.Command, c cluster.Cluster) (deploy.Images, error) {
	existing, targets, err := s.named()
	if err != nil {
		return nil, err
	}
	if s.loaded && s.registry != "" {
		return nil, errors.New("either the images are LOADED already, or they are pushed to a REGISTRY")
	}
	if s.loaded {
		fmt.Fprintln(cmd.OutOrStdout(), "==> no image is built: the cluster has those that the configuration names, or pulls them")
		return existing, nil
	}
	if c.Kind() == cluster.KindExternal && s.registry == "" && len(targets) > 0 {
		return nil, cluster.ErrNoLoading // before they are built, for which there may be no engine
	}
	images, err := s.build(ctx, cmd.OutOrStdout(), c, targets)
	if c.Kind() == cluster.KindExternal && errors.Is(err, engine.ErrNone) {
		return nil, errors.New("no container engine answers, and the images are built by one before they are pushed to REGISTRY: " +
			"start one, or have the images that the configuration names in the cluster and say LOADED=1")
	}
	if err != nil {
		return nil, err
	}
	maps.Copy(images, existing)
	return images, nil
}

// named returns the images that exist, by the names that the configuration has for them, and the targets of the others.
func (s *stage) named() (existing deploy.Images, targets map[string]string, err error) {
	if targets, err = image.Targets(s.dir); err != nil {
		return nil, nil, err
	}
	existing = deploy.Images{}
	for _, entry := range s.images {
		name, ref, found := strings.Cut(entry, "=")
		if !found || name == "" || ref == "" {
			return nil, nil, fmt.Errorf("--image=%s: want NAME=REF", entry)
		}
		delete(targets, name)
		existing[name] = ref
	}
	return existing, targets, nil
}

func (s *stage) build(ctx context.Context, out io.Writer, c cluster.Cluster, targets map[string]string) (deploy.Images, error) {
	if s.registry != "" {
		return image.ForRegistry(ctx, out, c, s.dir, targets, s.registry)
	}
	return image.ForStage(ctx, out, c, s.dir, targets)
}

// withCluster runs a command of a stage against the cluster: an external one that was allowed by name, else the harness's
// own, which is brought up if it is not. Others may use it meanwhile. A command that runs or replaces the operator has that
// for itself.
func withCluster(cmd *cobra.Command, s *stage, hasOperator bool, run func(context.Context, cluster.Cluster) error) error {
	ctx, what := cmd.Context(), s.makes(cmd.Name())
	c, err := cluster.Target(ctx)
	if err != nil {
		return err
	}
	name := ""
	var unlock func()
	if c != nil {
		name = cluster.LockName(c)
		warnOfOldServer(cmd.ErrOrStderr(), c)
		unlock, err = cluster.Share(ctx, cmd.ErrOrStderr(), name, what)
	} else {
		c, _, unlock, err = share(cmd, what)
	}
	if err != nil {
		return err
	}
	defer unlock()
	if hasOperator {
		unlock, err := cluster.LockStage(ctx, cmd.ErrOrStderr(), name, filepath.Base(s.dir), what)
		if err != nil {
			return err
		}
		defer unlock()
	}
	return run(ctx, c)
}
