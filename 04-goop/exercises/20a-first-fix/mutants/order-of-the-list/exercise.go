package firstfix

import (
	"context"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Reconcile corrects the first thing that is out of order in a chain.
func Reconcile(ctx context.Context, client typedcorev1.ConfigMapInterface, name string) error {
	chain, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	length, err := strconv.Atoi(chain.Data["length"])
	if err != nil {
		return err
	}
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: "chain=" + name})
	if err != nil {
		return err
	}
	links := map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		links[list.Items[i].Name] = &list.Items[i]
	}
	for i := range length {
		link := links[nameOf(name, i)]
		if link == nil {
			if i > 0 && links[nameOf(name, i-1)].Data["ready"] != "yes" {
				return nil
			}
			return create(ctx, client, chain, i)
		}
		if link.Data["text"] != chain.Data["text"] {
			link.Data["text"] = chain.Data["text"]
			_, err := client.Update(ctx, link, metav1.UpdateOptions{})
			return err
		}
	}
	for i := range slices.Backward(list.Items) {
		link := list.Items[i].Name
		if number, err := strconv.Atoi(link[len(name)+1:]); err == nil && number >= length {
			return client.Delete(ctx, link, metav1.DeleteOptions{})
		}
	}
	return nil
}

func create(ctx context.Context, client typedcorev1.ConfigMapInterface, chain *corev1.ConfigMap, i int) error {
	_, err := client.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(chain.Name, i), Labels: map[string]string{"chain": chain.Name}},
		Data:       map[string]string{"text": chain.Data["text"]},
	}, metav1.CreateOptions{})
	return err
}

func nameOf(chain string, i int) string { return chain + "-" + strconv.Itoa(i) }
