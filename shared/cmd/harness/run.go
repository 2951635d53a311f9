package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"example.com/workbook/shared/artifacts"
	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/operator"
)

func newRun() *cobra.Command {
	s := &stage{}
	cmd := &cobra.Command{
		Use:   "run [-- OPERATOR-FLAG…]",
		Short: "Run a stage's operator from this shell, as its own ServiceAccount, until Ctrl-C",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := s.open(); err != nil {
			return err
		}
		return withCluster(cmd, s, true, func(ctx context.Context, c cluster.Cluster) error {
			// A process needs no image. Those that it makes pods from are in a cluster of the reader's own, or pulled.
			s.loaded = s.loaded || c.Kind() == cluster.KindExternal && s.registry == ""
			images, err := s.resolve(ctx, cmd, c)
			if err != nil {
				return err
			}
			return runOperator(ctx, cmd, operator.Options{Cluster: c, StageDir: s.dir, Overlay: s.overlay, Images: images, Args: args})
		})
	}
	s.flags(cmd)
	s.overlayFlag(cmd)
	s.imageFlags(cmd)
	return cmd
}

func runOperator(ctx context.Context, cmd *cobra.Command, o operator.Options) error {
	out := cmd.OutOrStdout()
	logs, err := artifacts.Dir(filepath.Base(o.StageDir), "run")
	if err != nil {
		return err
	}
	o.Log, o.Output = filepath.Join(logs, "operator.log"), out
	p, err := operator.Run(ctx, out, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "==> the operator runs as %s; Ctrl-C ends it\n", p.User())
	cleanup := context.WithoutCancel(ctx)
	select {
	case <-p.Ended():
		return errors.Join(errors.New("the operator ended by itself"), p.Close(cleanup))
	case <-ctx.Done():
		return p.Close(cleanup)
	}
}
