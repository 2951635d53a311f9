package deploy

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Held returns the CRDs among the objects that are being deleted and that stay because an object of their kind has a
// finalizer: as a rule one that only the operator removes, so it has to run for the CRD to be deleted.
func Held(ctx context.Context, cfg *rest.Config, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	var held []*unstructured.Unstructured
	for _, object := range objects {
		if !isCRD(object) {
			continue
		}
		live := object.DeepCopy()
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), live); ignoreGone(err) != nil {
			return nil, fmt.Errorf("looking at %s: %w", describe(object), err)
		} else if err != nil || live.GetDeletionTimestamp() == nil {
			continue
		}
		instances, err := listInstances(ctx, c, live)
		if err != nil {
			return nil, fmt.Errorf("listing the objects of %s: %w", describe(object), err)
		}
		if slices.ContainsFunc(instances, func(u unstructured.Unstructured) bool { return len(u.GetFinalizers()) > 0 }) {
			held = append(held, object)
		}
	}
	return held, nil
}

// Delete deletes objects in reverse order and waits until they are gone. Objects of a CRD's kind
// go first, while the operator that may have to remove their finalizers is still there.
func Delete(ctx context.Context, out io.Writer, cfg *rest.Config, objects []*unstructured.Unstructured) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if isCRD(object) {
			if err := deleteInstances(ctx, out, c, object); err != nil {
				return err
			}
		}
	}
	for _, object := range slices.Backward(objects) {
		if err := c.Delete(ctx, object.DeepCopy()); ignoreGone(err) != nil {
			return fmt.Errorf("deleting %s: %w", describe(object), err)
		}
	}
	for _, object := range objects {
		if err := waitGone(ctx, out, c, object); err != nil {
			return err
		}
	}
	return nil
}

func deleteInstances(ctx context.Context, out io.Writer, c client.Client, crd *unstructured.Unstructured) error {
	gvk, err := kindOf(crd)
	if err != nil {
		return err
	}
	var left []unstructured.Unstructured
	var listErr error
	return eventually(ctx, out, condition{
		what: "every " + gvk.Kind + " to be gone", limit: goneTimeout,
		met: func(ctx context.Context) (bool, error) {
			if left, listErr = listInstances(ctx, c, crd); listErr != nil {
				return false, listErr
			}
			for _, item := range left {
				if item.GetDeletionTimestamp() == nil {
					if err := c.Delete(ctx, &item); ignoreGone(err) != nil {
						return false, err
					}
				}
			}
			return len(left) == 0, nil
		},
		why: func(context.Context) string {
			if listErr != nil {
				return explained(listErr.Error())
			}
			return finalizersOf(left)
		},
	})
}

// waitGone waits until an object is deleted, or has been replaced by another of its name.
func waitGone(ctx context.Context, out io.Writer, c client.Client, object *unstructured.Unstructured) error {
	return eventually(ctx, out, condition{
		what: describe(object) + ", which is being deleted, to be gone", limit: goneTimeout,
		met: func(ctx context.Context) (bool, error) {
			live := object.DeepCopy()
			err := c.Get(ctx, client.ObjectKeyFromObject(object), live)
			if err == nil && object.GetUID() != "" && live.GetUID() != object.GetUID() {
				return true, nil
			}
			return isGone(err)
		},
		why: func(ctx context.Context) string { return whyNotGone(ctx, c, object) },
	})
}

// whyNotGone names what keeps an object that is being deleted, and how that ends.
func whyNotGone(ctx context.Context, c client.Client, object *unstructured.Unstructured) string {
	live := object.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return ""
	}
	switch {
	case isCRD(live):
		instances, err := listInstances(ctx, c, live)
		if err != nil {
			return explained(err.Error())
		}
		return finalizersOf(instances)
	case live.GroupVersionKind().Group == "" && live.GetKind() == "Namespace":
		return contentOf(live)
	}
	return finalizersOf([]unstructured.Unstructured{*live})
}

// contentOf is what the namespace controller says of a namespace that it cannot empty.
func contentOf(namespace *unstructured.Unstructured) string {
	var said []string
	conditions, _, _ := unstructured.NestedSlice(namespace.Object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		if message, _ := condition["message"].(string); condition["status"] == "True" && message != "" {
			said = append(said, message)
		}
	}
	return explained(strings.Join(said, "; "))
}

// explained adds what may help to an error of the API server in which a conversion fails: the operator does not run, or responds
// with a failure.
func explained(text string) string {
	if !strings.Contains(text, "conversion webhook") {
		return text
	}
	return text + "; the operator converts these objects: if it does not run, `make run` or `make deploy` of its stage, with the OVERLAY that was deployed, starts it, from another terminal"
}

// finalizersOf names the objects that have finalizers, the first few of them, and says how a finalizer is removed.
func finalizersOf(objects []unstructured.Unstructured) string {
	const few = 3
	var said []string
	var first *unstructured.Unstructured
	for i, object := range objects {
		if len(object.GetFinalizers()) == 0 {
			continue
		}
		if first == nil {
			first = &objects[i]
		}
		said = append(said, fmt.Sprintf("%s has finalizer %s", describe(&object), strings.Join(object.GetFinalizers(), ", ")))
	}
	if first == nil {
		return ""
	}
	more := ""
	if len(said) > few {
		more, said = fmt.Sprintf(", and %d more", len(said)-few), said[:few]
	}
	inNamespace := ""
	if first.GetNamespace() != "" {
		inNamespace = " -n " + first.GetNamespace()
	}
	gk := first.GroupVersionKind().GroupKind()
	return fmt.Sprintf("%s%s. The operator that added a finalizer removes it: `make run` or `make deploy` of its stage starts it, from another terminal. "+
		"Without the operator's cleanup: kubectl%s patch %s %s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'",
		strings.Join(said, "; "), more, inNamespace, strings.ToLower(gk.String()), first.GetName())
}

// listInstances lists the objects of a CRD's kind.
func listInstances(ctx context.Context, c client.Client, crd *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	gvk, err := kindOf(crd)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err = c.List(ctx, list)
	return list.Items, ignoreGone(err)
}
