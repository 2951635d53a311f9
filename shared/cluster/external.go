package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Target decides which cluster a command of the reader's may change. Without KUBECONFIG and
// ALLOW_CONTEXT it is the harness's own, and Target returns nil. A KUBECONFIG that leads elsewhere is
// rejected, because the reader may not know that it is set, unless ALLOW_CONTEXT names the context.
func Target(ctx context.Context) (Cluster, error) {
	own, err := KubeconfigPath()
	if err != nil {
		return nil, err
	}
	return target(os.Getenv("KUBECONFIG"), os.Getenv("ALLOW_CONTEXT"), own)
}

func target(kubeconfig, allowed, own string) (Cluster, error) {
	if samePath(kubeconfig, own) {
		kubeconfig = ""
	}
	if kubeconfig == "" && allowed == "" {
		return nil, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if kubeconfig != "" {
		rules.Precedence = filepath.SplitList(kubeconfig)
	}
	config, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if allowed == "" && config.CurrentContext == "" {
		return nil, fmt.Errorf("KUBECONFIG=%s is not the workbook's own and leads nowhere: unset KUBECONFIG", kubeconfig)
	}
	if allowed == "" {
		return nil, fmt.Errorf("KUBECONFIG=%s leads to context %q, which the harness did not make: unset KUBECONFIG, or say ALLOW_CONTEXT=%s if you mean it",
			kubeconfig, config.CurrentContext, config.CurrentContext)
	}
	if _, found := config.Contexts[allowed]; !found {
		return nil, fmt.Errorf("ALLOW_CONTEXT=%s: the kubeconfig has no such context", allowed)
	}
	return &external{context: allowed, rules: rules}, nil
}

// samePath reports whether a leads to the file b, which need not be there yet. There may be links on the way.
func samePath(a, b string) bool {
	if abs, err := filepath.Abs(a); err == nil && abs == b {
		return true
	}
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(one, other)
}

// external is a cluster that the harness did not make.
type external struct {
	context string
	rules   *clientcmd.ClientConfigLoadingRules
}

func (f *external) Kind() Kind                  { return KindExternal }
func (f *external) Name() string                { return f.context }
func (f *external) Context() string             { return f.context }
func (f *external) RunsContainers() bool        { return true }
func (f *external) Close(context.Context) error { return nil }
func (f *external) Kubeconfig() string          { return f.rules.GetDefaultFilename() }
func (f *external) LoadImages(context.Context, ...string) (bool, error) {
	return false, errors.New("the harness cannot load images into a cluster that it did not make: name a registry that it pulls from, with REGISTRY=HOST:PORT")
}

func (f *external) AuditLog(context.Context) (io.ReadCloser, error) {
	return nil, errors.New("the harness cannot read the audit log of a cluster that it did not make")
}

func (f *external) RESTConfig() (*rest.Config, error) {
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.rules,
		&clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading context %s: %w", f.context, err)
	}
	return cfg, nil
}

func (f *external) Nodes(ctx context.Context) ([]Node, error) {
	cfg, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	return listNodes(ctx, cfg)
}
