package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/image"
)

// newLoad is for a project that names an image of a stage by a name of its own, as Lolcow in a weekend does.
func newLoad() *cobra.Command {
	s := &stage{}
	cmd := &cobra.Command{
		Use:   "load TARGET=REF…",
		Short: "Build targets of a stage's Dockerfile, and load them into the nodes under the names REF",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.open(); err != nil {
				return err
			}
			return withCluster(cmd, s, false, func(ctx context.Context, c cluster.Cluster) error {
				for _, arg := range args {
					if err := s.load(ctx, cmd, c, arg); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	s.flags(cmd)
	return cmd
}

func (s *stage) load(ctx context.Context, cmd *cobra.Command, c cluster.Cluster, arg string) error {
	target, ref, found := strings.Cut(arg, "=")
	switch {
	case !found || target == "" || ref == "":
		return fmt.Errorf("%s: want TARGET=REF", arg)
	case !c.RunsContainers():
		return nil
	case c.Kind() == cluster.KindExternal:
		fmt.Fprintf(cmd.ErrOrStderr(), "==> a cluster of your own needs the image %s: `%s` makes it, loading it into the nodes is yours\n",
			ref, s.makes("docker-build"))
		return nil
	}
	return image.LoadAs(ctx, cmd.ErrOrStderr(), c, s.dir, target, ref)
}
