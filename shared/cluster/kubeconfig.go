package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

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

// addContext merges the only context of a kubeconfig into the repository's own, as the current one.
func addContext(from *api.Config) (path string, err error) {
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
			to.CurrentContext = name
		}
	})
	return path, err
}

// removeContext takes a context, with the cluster and the user of the same name, out of the
// repository's kubeconfig. Outside a repository there is nothing to remove.
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
		for name := range c.Contexts {
			c.CurrentContext = name
		}
	})
}

// editKubeconfig changes a kubeconfig, or a new one, and writes it only if something changed.
func editKubeconfig(path string, edit func(*api.Config)) error {
	c, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		c = api.NewConfig()
	} else if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	edit(c)
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
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
	if err := clientcmd.WriteToFile(*kubeconfigFor(c.Context(), anonymous), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.Chmod(path, 0o600)
}
