// Package kube is what checks use that need an API server: access to it, namespaces, and a transport that counts requests
// and injects faults.
package kube

import (
	"encoding/json"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/workbook/shared/exercise/check"
)

// Config returns an administrator's access to the API server, without a limit on requests.
func Config(b *check.B) *rest.Config {
	content, err := os.ReadFile(os.Getenv(check.ServerVariable))
	if err != nil {
		b.Fatalf("the check has no API server: %v", err)
	}
	var server check.Server
	if err := json.Unmarshal(content, &server); err != nil {
		b.Fatalf("the file about the API server: %v", err)
	}
	return &rest.Config{
		Host:            server.Host,
		TLSClientConfig: rest.TLSClientConfig{CAData: server.CA, CertData: server.Cert, KeyData: server.Key},
		QPS:             -1,
	}
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
	namespace, err := Client(b).CoreV1().Namespaces().Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "exercise-",
		Labels:       map[string]string{check.RunLabel: os.Getenv(check.RunVariable)},
	}}, metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("creating a namespace: %v", err)
	}
	return namespace.Name
}
