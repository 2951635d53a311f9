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
// refused, because the reader may not know that it is set, unless ALLOW_CONTEXT names the context.
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
	return &foreign{context: allowed, rules: rules}, nil
}

func samePath(a, b string) bool {
	if a == "" {
		return false
	}
	abs, err := filepath.Abs(a)
	return err == nil && abs == b
}

// foreign is a cluster that somebody else made and runs.
type foreign struct {
	context string
	rules   *clientcmd.ClientConfigLoadingRules
}

func (f *foreign) Kind() Kind                  { return KindForeign }
func (f *foreign) Name() string                { return f.context }
func (f *foreign) Context() string             { return f.context }
func (f *foreign) RunsContainers() bool        { return true }
func (f *foreign) Close(context.Context) error { return nil }
func (f *foreign) Kubeconfig() string          { return f.rules.GetDefaultFilename() }
func (f *foreign) LoadImages(context.Context, ...string) (bool, error) {
	return false, errors.New("the harness cannot load images into a foreign cluster: name a registry that it pulls from, with REGISTRY=HOST:PORT")
}

func (f *foreign) AuditLog(context.Context) (io.ReadCloser, error) {
	return nil, errors.New("the harness cannot read the audit log of a foreign cluster")
}

func (f *foreign) RESTConfig() (*rest.Config, error) {
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.rules,
		&clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading context %s: %w", f.context, err)
	}
	return cfg, nil
}

func (f *foreign) Nodes(ctx context.Context) ([]Node, error) {
	cfg, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	return listNodes(ctx, cfg)
}
