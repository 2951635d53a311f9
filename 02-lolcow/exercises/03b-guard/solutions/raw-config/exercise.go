package guard

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// DeleteNamespace deletes a namespace of the cluster to which the kubeconfig leads, if its current context is the one that is
// allowed.
func DeleteNamespace(ctx context.Context, kubeconfig, allow, namespace string) error {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(kubeconfig)}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	if err := guard(loader, allow); err != nil {
		return err
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	if err := client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting namespace %s, on Kubernetes %s: %w", namespace, version.GitVersion, err)
	}
	return nil
}

// guard returns an error unless the current context is the one that is allowed.
func guard(loader clientcmd.ClientConfig, allow string) error {
	raw, err := loader.RawConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	switch raw.CurrentContext {
	case "":
		return errors.New("there is no current context")
	case allow:
		return nil
	}
	return fmt.Errorf("the current context is %s: to delete in it, allow it", raw.CurrentContext)
}
