package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/homedir"
)

// Config reads a kubeconfig: the file that is named, or .kube/config in the working folder or above it, up to the root of the
// repository. It never uses the user's own kubeconfig, environment variables, or the cluster that the program runs in, because
// the programs create and delete objects. (clientcmd.BuildConfigFromFlags uses that cluster if the file is empty.)
func Config(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		found, err := find()
		if err != nil {
			return nil, err
		}
		kubeconfig = found
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	read, err := rules.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no kubeconfig %s", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*read, read.CurrentContext, nil, rules).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("the kubeconfig %s names no cluster, or no current context", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}

func find() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the kubeconfig: %w", err)
	}
	for {
		if file := filepath.Join(dir, ".kube", "config"); exists(file) && !isHome(dir) {
			return file, nil
		}
		if exists(filepath.Join(dir, ".git")) || exists(filepath.Join(dir, "go.work")) || dir == filepath.Dir(dir) {
			return "", errors.New("there is no cluster to work on: bring one up with \"make cluster\", or name a kubeconfig with --kubeconfig")
		}
		dir = filepath.Dir(dir)
	}
}

// isHome reports whether a folder is the user's home folder, whose .kube/config is the user's own. The search may arrive there
// from a copy of this stage that is no repository yet.
func isHome(dir string) bool {
	found, err := os.Stat(dir)
	if err != nil {
		return false
	}
	home, err := os.Stat(homedir.HomeDir())
	return err == nil && os.SameFile(found, home)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
