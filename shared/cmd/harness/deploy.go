package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/image"
)

func newInstall() *cobra.Command {
	return stageCommand(&stage{}, "install", "Apply a stage's CRDs", deploy.Install)
}

func newUninstall() *cobra.Command {
	return stageCommand(&stage{}, "uninstall", "Delete a stage's CRDs and every object of their kinds", deploy.Uninstall)
}

func newUndeploy() *cobra.Command {
	s := &stage{}
	cmd := stageCommand(s, "undeploy", "Delete what deploy applied, and every object of the stage's kinds",
		func(ctx context.Context, out io.Writer, cfg *rest.Config, stageDir string) error {
			return deploy.Undeploy(ctx, out, cfg, stageDir, s.overlay)
		})
	s.overlayFlag(cmd)
	return cmd
}

func stageCommand(s *stage, use, short string, run func(ctx context.Context, out io.Writer, cfg *rest.Config, stageDir string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := s.open(); err != nil {
			return err
		}
		// Also beside an operator that runs: it may be the one that removes finalizers.
		return withCluster(cmd, s, false, func(ctx context.Context, c cluster.Cluster) error {
			cfg, err := c.RESTConfig()
			if err != nil {
				return err
			}
			err = run(ctx, cmd.OutOrStdout(), cfg, s.dir)
			if user := s.user(c); err == nil && user != "" && cmd.Name() != "install" {
				fmt.Fprintf(cmd.ErrOrStderr(), "==> %s still runs, without its CRDs: end it by Ctrl-C in its terminal\n", user)
			}
			return err
		})
	}
	s.flags(cmd)
	return cmd
}

func newDeploy() *cobra.Command {
	s := &stage{}
	cmd := &cobra.Command{Use: "deploy", Short: "Build a stage's images, load them, and apply its configuration with them", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := s.open(); err != nil {
			return err
		}
		if err := s.needContainers(cmd.Context()); err != nil {
			return err
		}
		return withCluster(cmd, s, true, func(ctx context.Context, c cluster.Cluster) error {
			images, err := s.resolve(ctx, cmd, c)
			if err != nil {
				return err
			}
			cfg, err := c.RESTConfig()
			if err != nil {
				return err
			}
			objects, err := deploy.Render(s.dir, s.overlay, images)
			if err != nil {
				return err
			}
			if s.loaded {
				if err := deploy.PreferLoaded(objects); err != nil {
					return err
				}
			}
			return deploy.Deploy(ctx, cmd.OutOrStdout(), cfg, objects)
		})
	}
	s.flags(cmd)
	s.overlayFlag(cmd)
	s.imageFlags(cmd)
	return cmd
}

// needContainers fails, before anything is waited for, where no container can run.
func (s *stage) needContainers(ctx context.Context) error {
	if c, err := cluster.Target(ctx); err != nil || c != nil {
		return err
	}
	kind, err := cluster.Choose(ctx, "")
	if err == nil && kind == cluster.KindEmbedded {
		err = fmt.Errorf("an embedded cluster runs no containers, so no operator either: use `%s`", s.makes("run"))
	}
	return err
}

// user is the process that runs or deploys the stage's operator at present.
func (s *stage) user(c cluster.Cluster) string {
	name := ""
	if c.Kind() == cluster.KindExternal {
		name = cluster.LockName(c)
	}
	return cluster.StageUser(name, filepath.Base(s.dir))
}

func newImage() *cobra.Command {
	s := &stage{}
	cmd := &cobra.Command{
		Use:   "image TARGET…",
		Short: "Build targets of a stage's Dockerfile and print their references",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, targets []string) error {
			if err := s.open(); err != nil {
				return err
			}
			for _, target := range targets {
				ref, err := image.Build(cmd.Context(), cmd.ErrOrStderr(), s.dir, target)
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), ref)
			}
			return nil
		},
	}
	s.flags(cmd)
	return cmd
}
