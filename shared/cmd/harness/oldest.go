package main

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/config"
)

// warnOfOldServer says so where a cluster is too old for the stages.
func warnOfOldServer(out io.Writer, c cluster.Cluster) {
	if cfg, err := c.RESTConfig(); err == nil {
		if old := oldServer(cfg); old != "" {
			fmt.Fprintln(out, "==> "+old)
		}
	}
}

// oldServer says that a cluster is older than the oldest Kubernetes that the stages are for. It is empty if the cluster is
// not, or does not tell its version.
func oldServer(cfg *rest.Config) string {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return ""
	}
	info, err := client.ServerVersion()
	if err != nil {
		return ""
	}
	oldest := config.Get("OLDEST_KUBERNETES")
	if has, err := version.ParseGeneric(info.GitVersion); err != nil || !has.LessThan(version.MustParseGeneric(oldest)) {
		return ""
	}
	return fmt.Sprintf("the cluster is Kubernetes %s, and the stages are for %s or later: an older API server rejects CRDs of theirs, or drops fields that they set",
		info.GitVersion, oldest)
}
