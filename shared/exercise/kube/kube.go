// Package kube is what checks use that need an API server: access to it, namespaces, and a transport that counts requests
// and injects faults.
package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/workbook/shared/exercise/check"
)

// Access returns an administrator's access to the API server, without a limit on requests. It is for a process that a check
// starts; a behaviour uses Config or ReaderConfig.
func Access() (*rest.Config, error) {
	server, err := server()
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            server.Host,
		TLSClientConfig: rest.TLSClientConfig{CAData: server.CA, CertData: server.Cert, KeyData: server.Key},
		QPS:             -1,
	}, nil
}

func server() (*check.Server, error) {
	content, err := os.ReadFile(os.Getenv(check.ServerVariable))
	if err != nil {
		return nil, fmt.Errorf("the check has no API server: %w", err)
	}
	server := &check.Server{}
	if err := json.Unmarshal(content, server); err != nil {
		return nil, fmt.Errorf("the file about the API server: %w", err)
	}
	return server, nil
}

// Config is the check's own access. Warnings about what the check writes are not printed beside the reader's output.
func Config(b *check.B) *rest.Config {
	config := ReaderConfig(b)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	return config
}

// ReaderConfig is the access of the reader's code: the API server's warnings about what it does are printed.
func ReaderConfig(b *check.B) *rest.Config {
	config, err := Access()
	if err != nil {
		b.Fatalf("%v", err)
	}
	return config
}

// Client returns a client of the check's own: its requests are not those of the reader's code.
func Client(b *check.B) kubernetes.Interface {
	client, err := kubernetes.NewForConfig(Config(b))
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	return client
}

// Namespace makes a namespace for one behaviour. The runner deletes it after the run, with all that is in it.
func Namespace(b *check.B) string {
	name, err := CreateNamespace(b.Context(), Client(b))
	if err != nil {
		b.Fatalf("%v", err)
	}
	return name
}

// CreateNamespace is Namespace for a process that a check starts.
func CreateNamespace(ctx context.Context, client kubernetes.Interface) (string, error) {
	namespace, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "exercise-",
		Labels:       map[string]string{check.RunLabel: os.Getenv(check.RunVariable)},
	}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	return namespace.Name, nil
}
