package main

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	client, err := newClient()
	if err != nil {
		return err
	}
	deployment, err := client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	replicaSets, err := client.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	events, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}

	// The UIDs of the three levels.
	var levels [3]map[types.UID]bool
	levels[0] = map[types.UID]bool{deployment.UID: true}
	levels[1], levels[2] = map[types.UID]bool{}, map[types.UID]bool{}
	for i := range replicaSets.Items {
		if metav1.IsControlledBy(&replicaSets.Items[i], deployment) {
			levels[1][replicaSets.Items[i].UID] = true
		}
	}
	for i := range pods.Items {
		if owner := metav1.GetControllerOf(&pods.Items[i]); owner != nil && levels[1][owner.UID] {
			levels[2][pods.Items[i].UID] = true
		}
	}
	printed := map[string]bool{}
	for _, level := range levels {
		for _, event := range events.Items {
			if by := event.Source.Component; level[event.InvolvedObject.UID] && !printed[by] {
				printed[by] = true
				fmt.Fprintln(os.Stdout, by)
			}
		}
	}
	return nil
}

func newClient() (kubernetes.Interface, error) {
	// The file that KUBECONFIG names, as kubectl.
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}
