package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyConfiguration is what all apply configurations have in common.
type applyConfiguration interface {
	runtime.ApplyConfiguration
	GetAPIVersion() *string
	GetKind() *string
	GetName() *string
	GetNamespace() *string
}

// typedApplyConfiguration is what all apply configurations of one kind have in common.
type typedApplyConfiguration[C any] interface {
	applyConfiguration
	WithUID(types.UID) C
	WithResourceVersion(string) C
}

// createOnlyResourceVersion is a resourceVersion that no object ever has: etcd counts from 1, and the first write makes it 2.
// An apply with it can only create. If the object exists, the API server rejects the apply, because the resourceVersions
// differ; if it does not exist, the API server ignores the resourceVersion.
const createOnlyResourceVersion = "1"

// applyDependent applies one dependent if it differs from what is desired, and returns it as it is now. With an error it
// returns the dependent as far as it is known: nil if it could not be read or created, or if owner does not own it. It compares
// only the fields that this controller owns. So it writes nothing in steady state, and does not change the fields of other
// writers.
//
// live is an empty object of the dependent's kind, into which the dependent is read. extract returns the fields of an object
// that a field manager owns. replacements returns the lists that must be replaced first,
// because another writer's element in them would make the apply fail.
func applyDependent[O client.Object, C typedApplyConfiguration[C]](
	ctx context.Context, c client.Client, fieldOwner string, owner client.Object,
	live O, desired C, extract func(live O, fieldManager string) (C, error), replacements func(live O, desired C) []replacement,
) (O, error) {
	var none O
	key := client.ObjectKey{Namespace: ptr.Deref(desired.GetNamespace(), ""), Name: ptr.Deref(desired.GetName(), "")}
	dependent, err := describe(c, live, key.Name)
	if err != nil {
		return none, err
	}
	err = c.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		stored, err := createByApply(ctx, c, fieldOwner, dependent, desired)
		if err != nil {
			return none, err
		}
		return live, decodeStored(dependent, desired, stored, live)
	}
	if err != nil {
		return none, fmt.Errorf("reading %s: %w", dependent, err)
	}
	if !metav1.IsControlledBy(live, owner) {
		return none, nameConflict(dependent)
	}

	// If extract fails, apply anyway: another writer may have added two elements with the same key to a list.
	owned, err := extract(live, fieldOwner)
	if err == nil && apiequality.Semantic.DeepEqual(owned, desired) {
		return live, nil
	}
	if lists := replacements(live, desired); len(lists) > 0 {
		if err := replaceLists(ctx, c, fieldOwner, live, lists); err != nil {
			return live, classify("changing "+dependent, err)
		}
	}
	// Forced, because these fields are this controller's own. With the resourceVersion, the API server rejects the apply if the
	// object has changed since it was read. With the uid, it rejects it if the object was deleted, instead of creating it again.
	desired = desired.WithUID(live.GetUID()).WithResourceVersion(live.GetResourceVersion())
	stored, err := apply(ctx, c, desired, client.FieldOwner(fieldOwner), client.ForceOwnership)
	if err != nil {
		return live, classify("applying "+dependent, err)
	}
	return live, decodeStored(dependent, desired, stored, live)
}

// apply sends an apply configuration, and returns what the API server has stored. The client's Apply decodes the response into
// the apply configuration that was sent. A field that the response omits, because it is false or zero, would keep the sent
// value. So the response is decoded separately.
func apply(ctx context.Context, c client.Client, desired applyConfiguration, options ...client.ApplyOption) (map[string]any, error) {
	request := &applyRequest{applyConfiguration: desired}
	err := c.Apply(ctx, request, options...)
	return request.stored, err
}

// applyRequest is an apply configuration that keeps the API server's response apart from what is sent.
type applyRequest struct {
	applyConfiguration
	stored map[string]any
	// ResourceVersion is that of the response. The client reads this field by reflection, so that later reads from the cache
	// are not older than this write.
	ResourceVersion *string
}

// MarshalJSON encodes what is sent.
func (r *applyRequest) MarshalJSON() ([]byte, error) { return json.Marshal(r.applyConfiguration) }

// UnmarshalJSON decodes the response.
func (r *applyRequest) UnmarshalJSON(body []byte) error {
	if err := utiljson.Unmarshal(body, &r.stored); err != nil {
		return err
	}
	version, _, err := unstructured.NestedString(r.stored, "metadata", "resourceVersion")
	r.ResourceVersion = &version
	return err
}

// createByApply applies a dependent that the cache does not contain, and returns what was created. It does not adopt an object
// of this name that was created in the meantime: then it returns an error that is retried. That is the API server's Conflict, or
// a name conflict joined with a transient error: the object may be this controller's own, which is not in the cache yet.
func createByApply[C typedApplyConfiguration[C]](ctx context.Context, c client.Client, fieldOwner, dependent string, desired C) (map[string]any, error) {
	stored, err := apply(ctx, c, desired.WithResourceVersion(createOnlyResourceVersion), client.FieldOwner(fieldOwner))
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		return nil, errors.Join(nameConflict(dependent), fmt.Errorf("%s is not in the cache yet", dependent))
	case err != nil:
		return nil, classify("applying "+dependent, err)
	}
	return stored, nil
}

// decodeStored decodes what the API server has stored after an apply into live: the newest state, without waiting for the
// cache. It returns a rejection if a stored value is not the desired one. Only admission can have changed it, because no other
// client can write between a request and its response; another apply would change nothing.
func decodeStored(dependent string, desired applyConfiguration, stored map[string]any, live client.Object) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored, live); err != nil {
		return fmt.Errorf("reading the response to an apply: %w", err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return fmt.Errorf("converting the desired %s: %w", dependent, err)
	}
	// A write changes it.
	unstructured.RemoveNestedField(fields, "metadata", "resourceVersion")
	if field := firstDifference(fields, stored); field != "" {
		return changedByAdmission(field, dependent)
	}
	return nil
}

// firstDifference is the path of the first field, in alphabetical order, whose stored value is not the desired one; empty if
// there is none. It does not descend into lists.
func firstDifference(desired, stored map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		if !covers(stored[name], desired[name]) {
			fields, _ := desired[name].(map[string]any)
			others, _ := stored[name].(map[string]any)
			return strings.TrimSuffix(name+"."+firstDifference(fields, others), ".")
		}
	}
	return ""
}

// covers reports whether an actual value contains the desired one. A list of objects contains the desired list if each desired
// object is covered by some object in it, in any order: other writers may have added objects.
func covers(actual, desired any) bool {
	switch desired := desired.(type) {
	case map[string]any:
		fields, ok := actual.(map[string]any)
		for name, value := range desired {
			ok = ok && covers(fields[name], value)
		}
		return ok
	case []any:
		elements, ok := actual.([]any)
		for i, element := range desired {
			if _, isObject := element.(map[string]any); isObject {
				ok = ok && slices.ContainsFunc(elements, func(one any) bool { return covers(one, element) })
			} else {
				ok = ok && len(elements) == len(desired) && elements[i] == element
			}
		}
		return ok
	}
	return actual == desired
}

// replacement is an operation of a JSON patch that replaces a list.
type replacement struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// replaceLists replaces lists of a dependent, which must not have changed since it was read.
func replaceLists(ctx context.Context, c client.Client, fieldOwner string, live client.Object, lists []replacement) error {
	operations := append([]replacement{{"replace", "/metadata/resourceVersion", live.GetResourceVersion()}}, lists...)
	body, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	return c.Patch(ctx, live, client.RawPatch(types.JSONPatchType, body), client.FieldOwner(fieldOwner))
}

// rekey removes from a list with listType=map the elements that have another key than the desired one and conflict with it. If
// no element has the desired key, the first of them gets it and stays. rekey returns nil if there is no conflict.
func rekey[E any](list []E, hasKey, conflicts func(E) bool, setKey func(*E)) []E {
	var kept, others []E
	for _, element := range list {
		if !hasKey(element) && conflicts(element) {
			others = append(others, element)
		} else {
			kept = append(kept, element)
		}
	}
	if len(others) == 0 {
		return nil
	}
	if !slices.ContainsFunc(kept, hasKey) {
		setKey(&others[0])
		kept = append(kept, others[0])
	}
	return kept
}

// rekeyServicePort corrects a Service in which another writer has given our port another number or protocol. Number
// and protocol are the key of the list. So an apply would add our port as a second entry, and the API server would reject that:
// two ports cannot have the same name, or the same protocol and node port.
func rekeyServicePort(live *corev1.Service, desired *corev1ac.ServiceApplyConfiguration) []replacement {
	ours := desired.Spec.Ports[0]
	ports := rekey(live.Spec.Ports,
		func(port corev1.ServicePort) bool { return port.Port == *ours.Port && port.Protocol == *ours.Protocol },
		func(port corev1.ServicePort) bool {
			return port.Name == *ours.Name || (port.Protocol == *ours.Protocol && port.NodePort == ptr.Deref(ours.NodePort, -1))
		},
		func(port *corev1.ServicePort) { port.Port, port.Protocol = *ours.Port, *ours.Protocol })
	if ports == nil {
		return nil
	}
	return []replacement{{"replace", "/spec/ports", ports}}
}

// rekeyContainerPort does for the port of our container what rekeyServicePort does for that of a Service.
func rekeyContainerPort(live *appsv1.Deployment, desired *appsv1ac.DeploymentApplyConfiguration) []replacement {
	container := desired.Spec.Template.Spec.Containers[0]
	ours := container.Ports[0]
	at := slices.IndexFunc(live.Spec.Template.Spec.Containers, func(one corev1.Container) bool { return one.Name == *container.Name })
	if at < 0 {
		return nil
	}
	ports := rekey(live.Spec.Template.Spec.Containers[at].Ports,
		func(port corev1.ContainerPort) bool {
			return port.ContainerPort == *ours.ContainerPort && port.Protocol == corev1.ProtocolTCP
		},
		func(port corev1.ContainerPort) bool { return port.Name == *ours.Name },
		func(port *corev1.ContainerPort) {
			port.ContainerPort, port.Protocol = *ours.ContainerPort, corev1.ProtocolTCP
		})
	if ports == nil {
		return nil
	}
	return []replacement{{"replace", fmt.Sprintf("/spec/template/spec/containers/%d/ports", at), ports}}
}

// describe is how messages name a dependent: by its kind and name.
func describe(c client.Client, dependent client.Object, name string) (string, error) {
	kind, err := c.GroupVersionKindFor(dependent)
	if err != nil {
		return "", fmt.Errorf("finding the kind of %T: %w", dependent, err)
	}
	return kind.Kind + " " + name, nil
}
