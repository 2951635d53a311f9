// Package connect finds the cluster that the programs of this stage work on, and says what to do where it
// cannot be reached.
package connect

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config reads a kubeconfig: the file that is named, or the workbook's own, .kube/config, in the folder
// where the program runs or above it, up to the root of the repository. It never falls back on the
// reader's own kubeconfig, on environment variables, or on the cluster that the program may run in: the
// programs make and delete objects. (clientcmd.BuildConfigFromFlags takes the surrounding cluster where
// the file is empty.)
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
		if file := filepath.Join(dir, ".kube", "config"); exists(file) {
			return file, nil
		}
		if exists(filepath.Join(dir, ".git")) || exists(filepath.Join(dir, "go.work")) || dir == filepath.Dir(dir) {
			return "", errors.New("there is no cluster to work on: bring one up with \"make cluster\", or name a kubeconfig with --kubeconfig")
		}
		dir = filepath.Dir(dir)
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// Explain adds to an error what the reader can do about it. Other errors stay as they are, nil too.
func Explain(err error) error {
	var certificate *tls.CertificateVerificationError
	var request *url.Error
	var network *net.OpError
	var groups *discovery.ErrGroupDiscoveryFailed
	switch {
	case err == nil:
		return nil
	case errors.As(err, &certificate):
		return fmt.Errorf("this is not the cluster that the kubeconfig is for: %w; %s", err, renew)
	// Whatever goes wrong before there is an answer is a url.Error, time-outs too: net/http makes it one.
	case errors.As(err, &request), errors.As(err, &network):
		return fmt.Errorf("the cluster does not answer: %w; is it up? \"make cluster\" brings it up", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not know who you are: %w; %s", err, renew)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the kubeconfig's user lacks a right: %w", err)
	case apimeta.IsNoMatchError(err), errors.As(err, &groups):
		return fmt.Errorf("the cluster does not know this resource: %w; \"kubectl api-resources\" lists those it knows", err)
	}
	return err
}

const renew = "the kubeconfig may be of an earlier cluster: \"make cluster\" writes a new one"
