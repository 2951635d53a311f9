package deploy

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		if err := Apply(ctx, out, cfg, objects); err != nil {
			return err
		}
		if err := WaitOwnable(ctx, out, cfg, objects); err != nil {
			return err
		}
		return WaitAvailable(ctx, out, cfg, objects)
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
		return Apply(ctx, out, cfg, objects)
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
		return Delete(ctx, out, cfg, objects)
	})
}

// Apply applies objects in their order by server-side apply, and waits for each CRD until its kind
// is served, so that objects of the kind may follow. An object that is being deleted would be gone a moment later, with
// what was applied: Apply waits until it is gone, and creates it anew. A CRD, with the objects of its kind, waits until
// the others are applied: the operator that removes the finalizers of its objects may be among these.
func Apply(ctx context.Context, out io.Writer, cfg *rest.Config, objects []*unstructured.Unstructured) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	var last []*unstructured.Unstructured
	for _, object := range objects {
		if slices.ContainsFunc(last, func(crd *unstructured.Unstructured) bool { return defines(crd, object) }) {
			last = append(last, object)
			continue
		}
		applied, err := apply(ctx, out, c, object)
		switch {
		case err != nil:
			return err
		case applied.GetDeletionTimestamp() != nil && isCRD(object):
			last = append(last, object)
		default:
			if err := settle(ctx, out, c, applied, object); err != nil {
				return err
			}
		}
	}
	for _, object := range last {
		applied, err := apply(ctx, out, c, object)
		if err == nil {
			err = settle(ctx, out, c, applied, object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// apply returns the object as it is in the cluster now.
func apply(ctx context.Context, out io.Writer, c client.Client, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if isCRD(object) {
		if err := endConversions(ctx, out, c, object); err != nil {
			return nil, err
		}
	}
	// Apply writes the response into its argument, and the caller may want to apply it again.
	applied := object.DeepCopy()
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), fieldOwner, client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("applying %s: %w", describe(object), err)
	}
	return applied, nil
}

// settle applies an object again once the one that is being deleted is gone, and waits until a CRD's kind is served.
func settle(ctx context.Context, out io.Writer, c client.Client, applied, object *unstructured.Unstructured) error {
	for applied.GetDeletionTimestamp() != nil {
		err := waitGone(ctx, out, c, applied)
		if err == nil {
			applied, err = apply(ctx, out, c, object)
		}
		if err != nil {
			return err
		}
	}
	if isCRD(object) {
		return waitEstablished(ctx, out, c, object)
	}
	return nil
}

// defines reports whether an object is of the kind that a CRD defines.
func defines(crd, object *unstructured.Unstructured) bool {
	if !isCRD(crd) {
		return false
	}
	gvk, err := kindOf(crd)
	return err == nil && gvk.GroupKind() == object.GroupVersionKind().GroupKind()
}

func waitEstablished(ctx context.Context, out io.Writer, c client.Client, crd *unstructured.Unstructured) error {
	var conditions []any
	return eventually(ctx, out, condition{
		what: "CRD " + crd.GetName() + " to be served", limit: establishTimeout,
		met: func(ctx context.Context) (bool, error) {
			live := crd.DeepCopy()
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
				return false, err
			}
			conditions, _, _ = unstructured.NestedSlice(live.Object, "status", "conditions")
			return slices.ContainsFunc(conditions, func(condition any) bool {
				m, _ := condition.(map[string]any)
				return m["type"] == "Established" && m["status"] == "True"
			}), nil
		},
		why: func(context.Context) string {
			for _, condition := range conditions {
				if m, _ := condition.(map[string]any); m["status"] == "False" {
					return fmt.Sprint(m["message"])
				}
			}
			return ""
		},
	})
}

// WaitAvailable waits until every Deployment among the objects runs its present template on all
// its replicas, and no pod of an older one is left.
func WaitAvailable(ctx context.Context, out io.Writer, cfg *rest.Config, objects []*unstructured.Unstructured) error {
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
		err := eventually(ctx, out, condition{
			what: describe(object) + " to be available", limit: availableTimeout,
			met: func(ctx context.Context) (bool, error) {
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
			},
			why: func(ctx context.Context) string { return last + podTrouble(ctx, c, live) },
		})
		if err != nil {
			return err
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

// kindOf is the kind that a CRD defines, in the version that is stored, which needs no conversion, or else in the first one that is
// served.
func kindOf(crd *unstructured.Unstructured) (schema.GroupVersionKind, error) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	found := ""
	for _, one := range versions {
		if version, _ := one.(map[string]any); version["served"] == true && (found == "" || version["storage"] == true) {
			found, _ = version["name"].(string)
		}
	}
	if found == "" {
		return schema.GroupVersionKind{}, fmt.Errorf("reading CRD %s: it serves no version", crd.GetName())
	}
	return schema.GroupVersionKind{Group: group, Version: found, Kind: kind}, nil
}

func newClient(cfg *rest.Config) (client.Client, error) {
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return c, nil
}

func isCRD(u *unstructured.Unstructured) bool { return u.GetKind() == "CustomResourceDefinition" }

func describe(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}
