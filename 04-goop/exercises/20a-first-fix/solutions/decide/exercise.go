package firstfix

import (
	"context"
	"slices"
	"strconv"
	"strings"

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
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: "chain=" + name})
	if err != nil {
		return err
	}
	todo, err := next(chain, list.Items)
	if err != nil || todo.verb == nothing {
		return err
	}
	switch todo.verb {
	case create:
		_, err = client.Create(ctx, todo.link, metav1.CreateOptions{})
	case update:
		_, err = client.Update(ctx, todo.link, metav1.UpdateOptions{})
	case remove:
		err = client.Delete(ctx, todo.link.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(todo.link.UID))})
	}
	return err
}

type verb int

const (
	nothing verb = iota
	create
	update
	remove
)

// action is one write, or none.
type action struct {
	verb verb
	link *corev1.ConfigMap
}

// next decides what to do. It is pure, but for the link that it changes.
func next(chain *corev1.ConfigMap, links []corev1.ConfigMap) (action, error) {
	length, err := strconv.Atoi(chain.Data["length"])
	if err != nil {
		return action{}, err
	}
	byNumber := map[int]*corev1.ConfigMap{}
	last := -1
	for i := range links {
		number, err := strconv.Atoi(strings.TrimPrefix(links[i].Name, chain.Name+"-"))
		if err != nil {
			return action{}, err
		}
		byNumber[number] = &links[i]
		last = max(last, number)
	}
	if last >= length {
		return action{remove, byNumber[last]}, nil
	}
	for _, link := range slices.Backward(links) {
		if link.Data["text"] != chain.Data["text"] {
			link.Data["text"] = chain.Data["text"]
			return action{update, &link}, nil
		}
	}
	for number := range length {
		if byNumber[number] != nil {
			continue
		}
		if number > 0 && byNumber[number-1].Data["ready"] != "yes" {
			break
		}
		return action{create, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: chain.Name + "-" + strconv.Itoa(number), Labels: map[string]string{"chain": chain.Name},
			},
			Data: map[string]string{"text": chain.Data["text"]},
		}}, nil
	}
	return action{}, nil
}
