package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: who-did-it NAMESPACE DEPLOYMENT")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "who-did-it:", err)
		os.Exit(1)
	}
}

// run prints who acted on a Deployment, on its ReplicaSets and on its Pods.
func run(ctx context.Context, namespace, name string) error {
	// The file that KUBECONFIG names, as kubectl.
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	events, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	printed := map[string]bool{}
	for _, kind := range []string{"Deployment", "ReplicaSet", "Pod"} {
		for _, event := range events.Items {
			object, by := event.InvolvedObject, event.ReportingController
			if object.Kind == kind && (object.Name == name || strings.HasPrefix(object.Name, name+"-")) && !printed[by] {
				printed[by] = true
				fmt.Fprintln(os.Stdout, by)
			}
		}
	}
	return nil
}
