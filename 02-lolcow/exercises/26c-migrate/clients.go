package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

type fields = map[string]any

// owner is a client that has applied a Kettle, and will do so again, without one of the fields.
type owner struct {
	key     types.NamespacedName
	manager string
	field   string
	spec    fields
}

func cups(guest string) []any { return []any{fields{"guest": guest, "sugar": int64(2)}} }

func (s *scene) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: name}
}

func (s *scene) kettles(version, namespace string) dynamic.ResourceInterface {
	return s.dynamic.Resource(kettles.WithVersion(version)).Namespace(namespace)
}

// apply is server-side apply by a client. What comes back is expected at the end.
func (s *scene) apply(version string, key types.NamespacedName, manager string, spec fields) (*unstructured.Unstructured, error) {
	kettle := &unstructured.Unstructured{Object: fields{"spec": spec}}
	kettle.SetAPIVersion(kettles.WithVersion(version).GroupVersion().String())
	kettle.SetKind("Kettle")
	kettle.SetName(key.Name)
	result, err := s.kettles(version, key.Namespace).Apply(s.b.Context(), key.Name, kettle,
		metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err == nil {
		s.expected[key] = lasting(result)
	}
	return result, err
}

// lasting is what has to stay of a Kettle.
func lasting(kettle *unstructured.Unstructured) fields {
	kettle = kettle.DeepCopy()
	kettle.SetManagedFields(nil)
	kettle.SetResourceVersion("")
	kettle.SetAPIVersion("")
	return kettle.Object
}

// create has several clients write a Kettle: the cook applies it, a user labels it in both versions, the operator writes its status.
func (s *scene) create(key types.NamespacedName) {
	spec := fields{"liters": int64(1), "lid": fields{"color": "red", "whistles": true}, "cups": cups("ann")}
	_, err := s.apply(older, key, "cook", spec)
	s.must("creating a Kettle", err)
	s.owns(owner{key, "cook", "lid", fields{"cups": cups("ann")}})
	s.patch(older, key, "user", `{"metadata":{"labels":{"room":"kitchen"}}}`)
	s.patch(newer, key, "user", `{"metadata":{"labels":{"stove":"gas"}}}`)
	s.patch(older, key, "operator", `{"status":{"temperature":20}}`, "status")
}

func (s *scene) patch(version string, key types.NamespacedName, manager, patch string, subresources ...string) {
	result, err := s.kettles(version, key.Namespace).Patch(s.b.Context(), key.Name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: manager}, subresources...)
	s.must("patching a Kettle", err)
	s.expected[key] = lasting(result)
}

func (s *scene) owns(one owner) {
	s.owners = slices.DeleteFunc(s.owners, func(other owner) bool { return other.key == one.key && other.manager == one.manager })
	s.owners = append(s.owners, one)
}

// delete deletes a Kettle, as a user.
func (s *scene) delete(key types.NamespacedName) {
	s.b.Event("  meanwhile a user deletes the Kettle %s", key.Name)
	s.must("deleting a Kettle", s.kettles(newer, key.Namespace).Delete(s.b.Context(), key.Name, metav1.DeleteOptions{}))
	delete(s.expected, key)
	s.owners = slices.DeleteFunc(s.owners, func(one owner) bool { return one.key == key })
}

// write has the guest apply a Kettle, if its version is served.
func (s *scene) write(version string, key types.NamespacedName, liters int64) {
	_, err := s.apply(version, key, "guest", fields{"liters": liters, "cups": cups("eve")})
	if apierrors.IsNotFound(err) {
		return
	}
	s.must("applying a Kettle", err)
	s.b.Event("  meanwhile the guest applies the Kettle %s in %s", key.Name, version)
	s.owns(owner{key, "guest", "liters", fields{"cups": cups("eve")}})
}

// expectStored asserts that no Kettle is stored as v1alpha1.
func (s *scene) expectStored() {
	if names := s.outdated(); len(names) > 0 {
		s.b.Fatalf("in etcd these Kettles are v1alpha1: %v", names)
	}
}

// expectOut asserts that v1alpha1 is out of service.
func (s *scene) expectOut() {
	crd, err := s.crds.Get(s.b.Context(), s.crd.Name, metav1.GetOptions{})
	s.must("reading the CRD", err)
	if stored := crd.Status.StoredVersions; !slices.Equal(stored, []string{newer}) {
		s.b.Fatalf("status.storedVersions is %v", stored)
	}
	for _, version := range crd.Spec.Versions {
		if version.Served != (version.Name == newer) {
			s.b.Fatalf("the CRD has served: %t for %s", version.Served, version.Name)
		}
	}
}

// expectUnnamed asserts that no entry of managedFields names v1alpha1: a client whose entry does will not be able to apply.
func (s *scene) expectUnnamed() {
	list, err := s.kettles(newer, "").List(s.b.Context(), metav1.ListOptions{})
	s.must("listing Kettles", err)
	for _, kettle := range list.Items {
		for _, entry := range kettle.GetManagedFields() {
			if entry.APIVersion == kettles.WithVersion(older).GroupVersion().String() {
				s.b.Fatalf("Migrate returned no error, and managedFields of the Kettle %s name v1alpha1", kettle.GetName())
			}
		}
	}
}

// expectUnchanged asserts that the Kettles are those that clients have left.
func (s *scene) expectUnchanged() {
	list, err := s.kettles(newer, "").List(s.b.Context(), metav1.ListOptions{})
	s.must("listing Kettles", err)
	found := map[types.NamespacedName]fields{}
	for i := range list.Items {
		kettle := &list.Items[i]
		key := types.NamespacedName{Namespace: kettle.GetNamespace(), Name: kettle.GetName()}
		if s.expected[key] == nil {
			s.b.Errorf("the Kettle %s is there, and clients have left none", key.Name)
		}
		found[key] = lasting(kettle)
	}
	byName := func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) }
	for _, key := range slices.SortedFunc(maps.Keys(s.expected), byName) {
		if found[key] == nil {
			s.b.Errorf("the Kettle %s is lost", key.Name)
		} else if path := difference("", s.expected[key], found[key]); path != "" {
			s.b.Errorf("the Kettle %s is not as clients have left it: %s", key.Name, path)
		}
	}
}

// difference is the path of a field that differs, or empty.
func difference(path string, was, is any) string {
	before, ok := was.(fields)
	after, also := is.(fields)
	switch {
	case equality.Semantic.DeepEqual(was, is):
		return ""
	case was == nil:
		return path + " has been added"
	case is == nil:
		return path + " is lost"
	case !ok || !also:
		return path + " has changed"
	}
	all := maps.Clone(before)
	maps.Copy(all, after)
	// Backward: a field of the spec says more than the generation, which changes with it.
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(all))) {
		if text := difference(strings.TrimPrefix(path+"."+key, "."), before[key], after[key]); text != "" {
			return text
		}
	}
	return ""
}

// release installs a CRD that does not know v1alpha1 any more, and knows v1: by that the check sees that the API server uses it.
func (s *scene) release() {
	s.b.Event("the next release of the CRD is installed, which has no v1alpha1")
	crd, err := s.crds.Get(s.b.Context(), s.crd.Name, metav1.GetOptions{})
	s.must("reading the CRD", err)
	crd.Spec.Versions = s.crd.DeepCopy().Spec.Versions
	crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = true, false
	crd.Spec.Versions[1].Name = "v1"
	_, err = s.crds.Update(s.b.Context(), crd, metav1.UpdateOptions{})
	s.must("installing the next release of the CRD", err)
	s.b.Eventually(patience, func() string {
		if _, err := s.kettles("v1", "").List(s.b.Context(), metav1.ListOptions{}); err != nil {
			return fmt.Sprintf("the next release of the CRD is not in use: %v", err)
		}
		return ""
	})
}

// expectOwners installs the next release, and asserts that each client owns what it applied. The client that applied last is the first,
// because it has taken fields from the others.
func (s *scene) expectOwners() {
	s.release()
	for _, one := range slices.Backward(s.owners) {
		s.b.Event("%s applies the Kettle %s in v1beta1, without spec.%s", one.manager, one.key.Name, one.field)
		kettle, err := s.apply(newer, one.key, one.manager, one.spec)
		if err != nil {
			s.b.Fatalf("%s applies the Kettle %s, and the API server rejects it: %v", one.manager, one.key.Name, err)
		}
		if _, found, _ := unstructured.NestedFieldNoCopy(kettle.Object, "spec", one.field); found {
			s.b.Fatalf("%s applied the Kettle %s before, and now without spec.%s, which is still there: %s does not own it any more",
				one.manager, one.key.Name, one.field, one.manager)
		}
	}
}
