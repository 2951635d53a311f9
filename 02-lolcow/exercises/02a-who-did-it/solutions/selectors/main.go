package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
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
	deployment, err := client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	levels := [3][]metav1.Object{{deployment}}
	replicaSets, err := client.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range replicaSets.Items {
		levels[1] = append(levels[1], ownedBy(&replicaSets.Items[i], levels[0])...)
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		levels[2] = append(levels[2], ownedBy(&pods.Items[i], levels[1])...)
	}
	printed := map[string]bool{}
	for _, object := range append(append(levels[0], levels[1]...), levels[2]...) {
		events, err := eventsOf(ctx, client, object)
		if err != nil {
			return err
		}
		for _, event := range events {
			if by := event.ReportingController; !printed[by] {
				printed[by] = true
				fmt.Fprintln(os.Stdout, by)
			}
		}
	}
	return nil
}

// ownedBy returns the object if one of the owners controls it.
func ownedBy(object metav1.Object, owners []metav1.Object) []metav1.Object {
	for _, owner := range owners {
		if metav1.IsControlledBy(object, owner) {
			return []metav1.Object{object}
		}
	}
	return nil
}

// eventsOf asks the API server for the Events of one object.
func eventsOf(ctx context.Context, client kubernetes.Interface, object metav1.Object) ([]corev1.Event, error) {
	selector := fields.OneTermEqualSelector("involvedObject.uid", string(object.GetUID()))
	list, err := client.CoreV1().Events(object.GetNamespace()).List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
