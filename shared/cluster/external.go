package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
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
	if kubeconfig == "" && allowed == "" {
		return nil, nil
	}
	// As in kubectl, this is a list of files. The first one that sets a value wins.
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	files := userFiles(kubeconfig)
	if kubeconfig != "" {
		rules.Precedence = files
	}
	config, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if allowed == "" {
		return nil, checkOwnContext(kubeconfig, files, config, own)
	}
	if _, found := config.Contexts[allowed]; !found {
		return nil, fmt.Errorf("ALLOW_CONTEXT=%s: the kubeconfig has no such context", allowed)
	}
	return &external{context: allowed, rules: rules}, nil
}

// checkOwnContext fails if what KUBECONFIG leads to is not of the repository's own kubeconfig.
func checkOwnContext(kubeconfig string, files []string, config *api.Config, own string) error {
	isOwn := func(file string) bool { return samePath(file, own) }
	current := config.Contexts[config.CurrentContext]
	if current != nil {
		cluster := config.Clusters[current.Cluster]
		if isOwn(current.LocationOfOrigin) && (cluster == nil || isOwn(cluster.LocationOfOrigin)) {
			return nil
		}
		return fmt.Errorf("KUBECONFIG=%s leads to context %q, which the harness did not make: unset KUBECONFIG, or set ALLOW_CONTEXT=%s if you mean it",
			kubeconfig, config.CurrentContext, config.CurrentContext)
	}
	// No cluster is up yet, or none is left.
	if slices.ContainsFunc(files, isOwn) {
		return nil
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("KUBECONFIG=%s is not the workbook's own and cannot be read: %w: unset KUBECONFIG", kubeconfig, err)
		}
	}
	return fmt.Errorf("KUBECONFIG=%s is not the workbook's own and has no current context: unset KUBECONFIG", kubeconfig)
}

// userFiles are the files of a KUBECONFIG. A relative one counts from the folder in which make was called: the harness
// itself runs in its own.
func userFiles(kubeconfig string) []string {
	var files []string
	for _, file := range filepath.SplitList(kubeconfig) {
		if file == "" {
			continue
		}
		if dir := os.Getenv("HARNESS_CALLER"); dir != "" && !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		files = append(files, file)
	}
	return files
}

// samePath reports whether a leads to the file b, which need not be there yet. There may be links on the way.
func samePath(a, b string) bool {
	return a != "" && resolve(a) == resolve(b)
}

func resolve(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if found, err := filepath.EvalSymlinks(path); err == nil {
		return found
	}
	// The link, or the folder, of a file that is not there yet.
	if to, err := os.Readlink(path); err == nil {
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		return resolve(to)
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolve(dir), filepath.Base(path))
	}
	return path
}

// externalLock begins the names of locks of clusters that the harness did not make: no name of one of its own has a dot.
const externalLock = "external."

// LockName is the name by which Share and LockStage know a cluster that Target returned: its API server's.
func LockName(c Cluster) string {
	host := ""
	if cfg, err := c.RESTConfig(); err == nil {
		host = cfg.Host
	}
	return externalLock + hash(host)
}

// ErrNoLoading says how a cluster that the harness did not make gets images.
var ErrNoLoading = errors.New("the harness cannot load images into a cluster that it did not make: name a registry that it pulls from, with REGISTRY=HOST:PORT, " +
	"or load the images that the configuration names yourself (`make docker-build` makes them) and say LOADED=1")

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
func (f *external) LoadImages(_ context.Context, refs ...string) (bool, error) {
	if len(refs) == 0 {
		return false, nil
	}
	return false, ErrNoLoading
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
