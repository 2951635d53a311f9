package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"example.com/workbook/shared/config"
)

// KubeconfigPath is the repository's own kubeconfig, which holds the clusters the harness made and
// no others. The reader's own file is never touched.
func KubeconfigPath() (string, error) {
	repo, err := config.Repo()
	if err != nil {
		return "", err
	}
	return filepath.Join(repo, ".kube", "config"), nil
}

// restConfig leads to one context of a kubeconfig, whichever is the current one.
func restConfig(path, context string) (*rest.Config, error) {
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path},
		&clientcmd.ConfigOverrides{CurrentContext: context},
	).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading context %s of %s: %w", context, path, err)
	}
	// Tests poll; client-go's default of 5 requests a second would be what they measure.
	cfg.QPS, cfg.Burst = 200, 400
	return cfg, nil
}

// addContext merges the only context of a kubeconfig into the repository's own. It becomes the current one if it shall, or
// if there is none: a shell whose kubectl goes to another cluster may be about to delete something there.
func addContext(from *api.Config, current bool) (path string, err error) {
	path, err = KubeconfigPath()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("creating the folder for the kubeconfig: %w", err)
	}
	err = editKubeconfig(path, func(to *api.Config) {
		maps.Copy(to.Clusters, from.Clusters)
		maps.Copy(to.AuthInfos, from.AuthInfos)
		for name, context := range from.Contexts {
			to.Contexts[name] = context
			if current || to.Contexts[to.CurrentContext] == nil {
				to.CurrentContext = name
			}
		}
	})
	return path, err
}

// removeContext takes a context, with the cluster and the user of the same name, out of the
// repository's kubeconfig. If it was the current one, the project's cluster that Choose prefers is that now, else the first
// by name. Outside a repository there is nothing to remove.
func removeContext(context string) error {
	path, err := KubeconfigPath()
	if err != nil {
		return nil //nolint:nilerr // outside a repository there is no kubeconfig of its own
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return editKubeconfig(path, func(c *api.Config) {
		delete(c.Contexts, context)
		delete(c.Clusters, context)
		delete(c.AuthInfos, context)
		if c.CurrentContext != context {
			return
		}
		c.CurrentContext = ""
		left := []string{ContextName(KindKind, config.Project()), ContextName(KindEmbedded, config.Project())}
		for _, name := range append(left, slices.Sorted(maps.Keys(c.Contexts))...) {
			if c.Contexts[name] != nil {
				c.CurrentContext = name
				return
			}
		}
	})
}

// editKubeconfig changes a kubeconfig, or a new one. Runs on clusters of other names change the same file. The lock's file
// stays: it may not be path.lock, whose existence alone is a lock for kubectl and kind.
func editKubeconfig(path string, edit func(*api.Config)) error {
	lock := flock.New(path + ".edit")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("locking %s: %w", path, err)
	}
	defer func() { _ = lock.Unlock() }()
	c, err := load(path)
	if err != nil {
		return err
	}
	edit(c)
	return write(path, c) // others read it meanwhile, without the lock
}

func write(path string, c *api.Config) error {
	text, err := clientcmd.Write(*c)
	if err == nil {
		err = config.WriteFile(path, text)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// load reads a kubeconfig, or starts a new one. One that was damaged, as by a power cut, is moved aside: it would be in
// the way of everything, and each cluster writes its entry again.
func load(path string) (*api.Config, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return api.NewConfig(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c, err := clientcmd.Load(text)
	if err == nil {
		return c, nil
	}
	aside := path + ".unreadable"
	fmt.Fprintf(os.Stderr, "==> %s cannot be read; it is %s now: %v\n", path, aside, err)
	if err := os.Rename(path, aside); err != nil {
		return nil, fmt.Errorf("moving the kubeconfig aside: %w", err)
	}
	return api.NewConfig(), nil
}

// WriteTokenKubeconfig writes a kubeconfig, readable by its owner only, whose one context leads to c
// with a bearer token and without the administrator's credentials.
func WriteTokenKubeconfig(path string, c Cluster, token string) error {
	cfg, err := c.RESTConfig()
	if err != nil {
		return err
	}
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return fmt.Errorf("reading the cluster's certificate: %w", err)
	}
	anonymous := rest.AnonymousClientConfig(cfg)
	anonymous.BearerToken = token
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("creating the folder for %s: %w", path, err)
	}
	return write(path, kubeconfigFor(c.Context(), anonymous))
}
