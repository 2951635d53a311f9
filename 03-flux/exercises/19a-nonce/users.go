package nonce

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// inFile is the ConfigMap as it is in the file of the user.
func inFile(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{sizeKey: "small"}}
}

func (s *scene) create(name string) *corev1.ConfigMap {
	s.b.Event("a user creates the ConfigMap %s", name)
	s.size = inFile(name).Data[sizeKey]
	object, err := s.client.Create(s.b.Context(), inFile(name), metav1.CreateOptions{})
	s.must("creating a ConfigMap", err)
	return object
}

// replace is kubectl replace with the file of the user.
func (s *scene) replace(name string) {
	s.b.Event("a user replaces the ConfigMap %s by the one in their file", name)
	file := inFile(name)
	s.size = file.Data[sizeKey]
	if s.oldMachine != "" {
		s.b.Event("  data.%s in it is %s", machineKey, s.oldMachine)
		file.Data[machineKey] = s.oldMachine
	}
	_, err := s.client.Update(s.b.Context(), file, metav1.UpdateOptions{})
	s.must("replacing a ConfigMap", err)
}

// resize writes the other key.
func (s *scene) resize(name string) {
	s.size = "large"
	s.b.Event("a user sets data.%s of the ConfigMap %s to %s", sizeKey, name, s.size)
	patch := fmt.Appendf(nil, `{"data":{%q:%q}}`, sizeKey, s.size)
	_, err := s.client.Patch(s.b.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	s.must("changing a ConfigMap", err)
}

func (s *scene) delete(name string) {
	s.b.Event("a user deletes the ConfigMap %s", name)
	s.must("deleting a ConfigMap", s.client.Delete(s.b.Context(), name, metav1.DeleteOptions{}))
}

// recreate deletes a ConfigMap that has its machine, and creates another one of the same name, which has to get a machine, too.
func (s *scene) recreate(name string, meanwhile func() bool) {
	s.settle(name)
	s.delete(name)
	_ = s.call(name)
	meanwhile()
	s.create(name)
	for range 2 {
		_ = s.call(name)
		s.expectNotTheFirst(name)
	}
	s.settle(name)
	s.expect(name, 2)
	s.delete(name)
	s.collect()
	for left := range s.all() {
		s.b.Fatalf("the user has deleted both, and this is left: the ConfigMap %s", left)
	}
}

// collect is the garbage collector: it deletes what has owners, none of which is there.
func (s *scene) collect() bool {
	all := s.all()
	there := map[types.UID]bool{}
	for _, object := range all {
		there[object.UID] = true
	}
	collected := false
	for name, object := range all {
		owned := slices.ContainsFunc(object.OwnerReferences, func(owner metav1.OwnerReference) bool { return there[owner.UID] })
		if len(object.OwnerReferences) > 0 && !owned {
			s.b.Event("the garbage collector deletes %s", name)
			s.must("deleting a ConfigMap", s.client.Delete(s.b.Context(), name, metav1.DeleteOptions{}))
			collected = true
		}
	}
	return collected
}
