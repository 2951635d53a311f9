package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/config"
	"example.com/workbook/shared/operator"
)

func newCluster() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Bring a cluster up, end it",
		Long:  "CLUSTER=kind|embedded chooses the kind of cluster (without it: the one that is up), CLUSTER_NAME its name.",
	}
	cmd.AddCommand(
		&cobra.Command{Use: "up", Short: "Bring the cluster up, or use the one that is up", Args: cobra.NoArgs, RunE: clusterUp},
		&cobra.Command{Use: "delete", Short: "End everything of the cluster", Args: cobra.NoArgs, RunE: clusterDelete},
		&cobra.Command{Use: "serve", Short: "Run an embedded cluster until interrupted", Args: cobra.NoArgs, Hidden: true, RunE: clusterServe},
	)
	return cmd
}

func clusterUp(cmd *cobra.Command, _ []string) error {
	out := cmd.OutOrStdout()
	c, created, unlock, err := share(cmd, "make cluster")
	if err != nil {
		return err
	}
	defer unlock()
	if !created {
		fmt.Fprintf(out, "==> the %s cluster %s is up already\n", c.Kind(), c.Name())
	}
	fmt.Fprintf(out, "==> use it with: eval \"$(make env)\"; end it with: make cluster-delete\n")
	return nil
}

// share returns the harness's own cluster, which others may use too. It has the cluster for itself only to make or replace
// it.
func share(cmd *cobra.Command, what string) (c cluster.Cluster, created bool, unlock func(), err error) {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	// Between the two locks another process may end the cluster, but not for ever.
	for range 3 {
		if unlock, err = cluster.Share(ctx, cmd.ErrOrStderr(), "", what); err != nil {
			return nil, false, nil, err
		}
		c, err = cluster.Use(ctx, out, cluster.Options{})
		if err == nil {
			return c, created, unlock, nil
		}
		unlock()
		if !errors.Is(err, cluster.ErrNotUp) {
			return nil, false, nil, err
		}
		if unlock, err = cluster.Lock(ctx, cmd.ErrOrStderr(), "", what); err != nil {
			return nil, false, nil, err
		}
		_, created, err = ensure(ctx, cmd)
		unlock()
		if err != nil {
			return nil, false, nil, err
		}
	}
	return nil, false, nil, err
}

// ensure brings up the harness's own cluster, to stay.
func ensure(ctx context.Context, cmd *cobra.Command) (cluster.Cluster, bool, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, false, fmt.Errorf("finding the harness: %w", err)
	}
	return cluster.Ensure(ctx, cmd.OutOrStdout(), cluster.Options{Supervisor: []string{self, "cluster", "serve"}})
}

func clusterDelete(cmd *cobra.Command, _ []string) error {
	unlock, err := cluster.Lock(cmd.Context(), cmd.ErrOrStderr(), "", "make cluster-delete")
	if err != nil {
		return err
	}
	defer unlock()
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if err := cluster.Delete(ctx, out, ""); err != nil {
		return err
	}
	var errs []error
	for _, kind := range []cluster.Kind{cluster.KindKind, cluster.KindEmbedded} {
		if wish := os.Getenv("CLUSTER"); wish == "" || wish == string(kind) {
			errs = append(errs, operator.Forget(ctx, out, cluster.ContextName(kind, config.ClusterName())))
		}
	}
	return errors.Join(errs...)
}

func clusterServe(cmd *cobra.Command, _ []string) error {
	return cluster.Serve(cmd.Context(), cmd.OutOrStdout(), "")
}
