package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/step"
)

// fieldOwner is the name under which the harness applies objects.
const fieldOwner = client.FieldOwner("harness")

// Bounds on how long the cluster may take.
const (
	establishTimeout = 30 * time.Second
	availableTimeout = 2 * time.Minute
	goneTimeout      = 2 * time.Minute
)

// Deploy applies what Render made and waits until its Deployments serve.
func Deploy(ctx context.Context, out io.Writer, cfg *rest.Config, objects []*unstructured.Unstructured) error {
	return step.Run(ctx, out, fmt.Sprintf("applying %d objects and waiting for the operator", len(objects)), func(ctx context.Context) error {
		if err := Apply(ctx, cfg, objects); err != nil {
			return err
		}
		if err := WaitOwnable(ctx, cfg, objects); err != nil {
			return err
		}
		return WaitAvailable(ctx, cfg, objects)
	})
}

// Undeploy deletes what Deploy applied, with every object of the stage's kinds, and waits until
// all of it is gone.
func Undeploy(ctx context.Context, out io.Writer, cfg *rest.Config, stageDir, overlay string) error {
	return remove(ctx, out, cfg, stageDir, cmp.Or(overlay, DefaultOverlay))
}

// Install applies STAGE/config/crd and waits until the API server serves the kinds.
func Install(ctx context.Context, out io.Writer, cfg *rest.Config, stageDir string) error {
	objects, err := Render(stageDir, "crd", nil)
	if err != nil {
		return err
	}
	return step.Run(ctx, out, "installing the CRDs", func(ctx context.Context) error {
		return Apply(ctx, cfg, objects)
	})
}

// Uninstall deletes what Install applied, with every object of those kinds.
func Uninstall(ctx context.Context, out io.Writer, cfg *rest.Config, stageDir string) error {
	return remove(ctx, out, cfg, stageDir, "crd")
}

func remove(ctx context.Context, out io.Writer, cfg *rest.Config, stageDir, overlay string) error {
	objects, err := Render(stageDir, overlay, nil)
	if err != nil {
		return err
	}
	return step.Run(ctx, out, fmt.Sprintf("deleting the objects of config/%s", overlay), func(ctx context.Context) error {
		return Delete(ctx, cfg, objects)
	})
}

// Apply applies objects in their order by server-side apply, and waits for each CRD until its kind
// is served, so that objects of the kind may follow.
func Apply(ctx context.Context, cfg *rest.Config, objects []*unstructured.Unstructured) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	for _, object := range objects {
		// Apply writes the answer into its argument, and the caller may want to apply it again.
		applied := object.DeepCopy()
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), fieldOwner, client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s: %w", describe(object), err)
		}
		if isCRD(object) {
			if err := waitEstablished(ctx, c, object); err != nil {
				return err
			}
		}
	}
	return nil
}

func waitEstablished(ctx context.Context, c client.Client, crd *unstructured.Unstructured) error {
	return eventually(ctx, establishTimeout, "CRD "+crd.GetName()+" to be served", func(ctx context.Context) (bool, error) {
		live := crd.DeepCopy()
		if err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(condition any) bool {
			m, _ := condition.(map[string]any)
			return m["type"] == "Established" && m["status"] == "True"
		}), nil
	})
}

// WaitAvailable waits until every Deployment among the objects runs its present template on all
// its replicas, and no pod of an older one is left.
func WaitAvailable(ctx context.Context, cfg *rest.Config, objects []*unstructured.Unstructured) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		live := &appsv1.Deployment{}
		last := ""
		err := eventually(ctx, availableTimeout, describe(object)+" to be available", func(ctx context.Context) (bool, error) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
				return false, err
			}
			want := int32(1)
			if live.Spec.Replicas != nil {
				want = *live.Spec.Replicas
			}
			s := live.Status
			last = fmt.Sprintf("%d of %d replicas updated, %d available, %d in all", s.UpdatedReplicas, want, s.AvailableReplicas, s.Replicas)
			return s.ObservedGeneration >= live.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want && s.Replicas == want, nil
		})
		if err != nil {
			return fmt.Errorf("%w: %s%s", err, last, podTrouble(ctx, c, live))
		}
	}
	return nil
}

// podTrouble adds why the containers of a Deployment do not run, if they say so.
func podTrouble(ctx context.Context, c client.Client, d *appsv1.Deployment) string {
	if d.Spec.Selector == nil || ctx.Err() != nil {
		return ""
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		return ""
	}
	var text strings.Builder
	for _, pod := range pods.Items {
		for _, status := range pod.Status.ContainerStatuses {
			if w := status.State.Waiting; w != nil {
				fmt.Fprintf(&text, "; %s: %s %s", pod.Name, w.Reason, w.Message)
			}
		}
	}
	return text.String()
}

// Delete deletes objects in reverse order and waits until they are gone. Objects of a CRD's kind
// go first, while the operator that may have to remove their finalizers is still there.
func Delete(ctx context.Context, cfg *rest.Config, objects []*unstructured.Unstructured) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if isCRD(object) {
			if err := deleteInstances(ctx, c, object); err != nil {
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
		err := eventually(ctx, goneTimeout, describe(object)+" to be gone", func(ctx context.Context) (bool, error) {
			return isGone(c.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy()))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func deleteInstances(ctx context.Context, c client.Client, crd *unstructured.Unstructured) error {
	gvk, err := kindOf(crd)
	if err != nil {
		return err
	}
	return eventually(ctx, goneTimeout, "every "+gvk.Kind+" to be gone", func(ctx context.Context) (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := c.List(ctx, list); err != nil {
			return isGone(err)
		}
		for _, item := range list.Items {
			if item.GetDeletionTimestamp() == nil {
				if err := c.Delete(ctx, &item); ignoreGone(err) != nil {
					return false, err
				}
			}
		}
		return len(list.Items) == 0, nil
	})
}

// kindOf is the kind that a CRD defines, in the first of its versions that is served.
func kindOf(crd *unstructured.Unstructured) (schema.GroupVersionKind, error) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, one := range versions {
		if version, _ := one.(map[string]any); version["served"] == true {
			name, _ := version["name"].(string)
			return schema.GroupVersionKind{Group: group, Version: name, Kind: kind}, nil
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("reading CRD %s: it serves no version", crd.GetName())
}

func newClient(cfg *rest.Config) (client.Client, error) {
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return c, nil
}

// eventually asks until the answer is yes, up to a limit. An error is taken for a no, and reported
// if it was the last answer.
func eventually(ctx context.Context, limit time.Duration, what string, done func(context.Context) (bool, error)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		var ok bool
		ok, last = done(ctx)
		return ok, nil
	})
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("waiting for %s: %w", what, err), last)
}

// isGone understands the answers for an object that is gone, or whose kind is.
func isGone(err error) (bool, error) {
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return true, nil
	}
	return false, err
}

func ignoreGone(err error) error {
	_, err = isGone(err)
	return err
}

func isCRD(u *unstructured.Unstructured) bool { return u.GetKind() == "CustomResourceDefinition" }

func describe(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}
