package migrate

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	typed "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

//go:embed kettles.yaml
var manifest []byte

var kettles = schema.GroupResource{Group: "kitchen.example.com", Resource: "kettles"}

const (
	older, newer = "v1alpha1", "v1beta1"
	// canary is the Kettle by which the check sees whether the API server uses a changed CRD.
	canary = "canary"
	// page is how many Kettles are in a part of a list, where that matters.
	page = 2
	// patience is for the API server, which uses a changed CRD a moment later.
	patience = 30 * time.Second
)

// scene is an API server with Kettles, which are stored as v1alpha1.
type scene struct {
	b         *check.B
	entry     Entry
	wire      *kube.Wire
	direct    http.RoundTripper
	crds      typed.CustomResourceDefinitionInterface
	dynamic   dynamic.Interface
	crd       *apiextensionsv1.CustomResourceDefinition
	namespace string
	// expected are the Kettles as clients have left them.
	expected map[types.NamespacedName]fields
	owners   []owner
	// mu is held while a request for one object is observed.
	mu sync.Mutex
	// beforeCRD is called before a request of the reader's code that writes the CRD, listed before its first request for one Kettle, and
	// beforeKettle before it writes a Kettle, for the first time or again.
	beforeCRD    func()
	listed       func()
	beforeKettle func(number int, key types.NamespacedName)
	writes       map[types.NamespacedName]int
	// paged lists have few Kettles in each part.
	paged bool
}

func newScene(b *check.B, work check.Work[Entry]) *scene {
	s := &scene{
		b: b, entry: work.Entry, wire: kube.NewWire(b), crd: &apiextensionsv1.CustomResourceDefinition{},
		expected: map[types.NamespacedName]fields{}, writes: map[types.NamespacedName]int{},
		beforeCRD: func() {}, listed: func() {}, beforeKettle: func(int, types.NamespacedName) {},
	}
	extensions, err := apiextensions.NewForConfig(kube.Config(b))
	s.must("making a client", err)
	s.crds = extensions.ApiextensionsV1().CustomResourceDefinitions()
	s.dynamic, err = dynamic.NewForConfig(kube.Config(b))
	s.must("making a client", err)
	s.direct, err = rest.TransportFor(kube.Config(b))
	s.must("making a transport", err)
	s.must("reading the CRD", yaml.Unmarshal(manifest, s.crd))
	s.reset()
	b.Cleanup(func() { _ = s.restore(context.WithoutCancel(b.Context())) })
	s.namespace = kube.Namespace(b)
	s.create(s.key("one"))
	s.create(s.key("two"))
	// Its managedFields do not name v1alpha1, in which it is stored.
	_, err = s.apply(newer, s.key("three"), "cook", fields{"liters": int64(1)})
	s.must("creating a Kettle", err)
	s.wire.Before(s.observe)
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// reset undoes what a behaviour before this one has done. It does not delete the CRD, which takes seconds: the API server polls.
func (s *scene) reset() {
	s.b.Eventually(patience, func() string {
		if err := s.restore(s.b.Context()); err != nil {
			return fmt.Sprintf("restoring the CRD: %v", err)
		}
		return ""
	})
	content, err := json.Marshal(s.crd)
	s.must("encoding the CRD", err)
	kube.InstallCRD(s.b, content)
	s.b.Eventually(patience, func() string {
		list, err := s.kettles(older, "").List(s.b.Context(), metav1.ListOptions{})
		if err != nil {
			return fmt.Sprintf("listing Kettles: %v", err)
		}
		for _, kettle := range list.Items {
			err = s.kettles(older, kettle.GetNamespace()).Delete(s.b.Context(), kettle.GetName(), metav1.DeleteOptions{})
			s.must("deleting a Kettle", err)
		}
		s.create(types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: canary})
		if s.storedAs(canary) != older {
			return "the API server does not store Kettles as v1alpha1"
		}
		return ""
	})
}

// restore has the CRD as it was, if there is one.
func (s *scene) restore(ctx context.Context) error {
	live, err := s.crds.Get(ctx, s.crd.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	live.Spec = *s.crd.Spec.DeepCopy()
	if live, err = s.crds.Update(ctx, live, metav1.UpdateOptions{}); err != nil {
		return err
	}
	live.Status.StoredVersions = []string{older}
	_, err = s.crds.UpdateStatus(ctx, live, metav1.UpdateOptions{})
	return err
}

// call calls Migrate.
func (s *scene) call() error {
	s.b.Event("Migrate is called")
	err := s.entry(s.b.Context(), s.wire.Config())
	s.b.Event("  it returned: %v", err)
	return err
}

// migrate calls Migrate, which has no reason to return an error.
func (s *scene) migrate() {
	if err := s.call(); err != nil {
		s.b.Fatalf("nothing is in the way, and Migrate returned the error: %v", err)
	}
}

// observe sees each request of the reader's code.
func (s *scene) observe(request kube.Request, r *http.Request) (*http.Response, error) {
	switch {
	case request.Resource == kettles.Resource && s.paged && request.Query.Get("limit") != "":
		// A part of a list may have fewer objects than the limit.
		query := r.URL.Query()
		query.Set("limit", fmt.Sprint(page))
		r.URL.RawQuery = query.Encode()
		return nil, nil
	case request.Name == "":
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if request.Resource == kettles.Resource {
		s.listed()
		s.listed = func() {}
	}
	switch {
	case kube.Reads(request):
	case request.Resource == kettles.Resource:
		key := types.NamespacedName{Namespace: request.Namespace, Name: request.Name}
		s.writes[key]++
		s.beforeKettle(s.writes[key], key)
	case request.Name == s.crd.Name:
		s.beforeCRD()
		response, err := s.direct.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusOK {
			s.settle()
			s.notTooEarly()
		}
		return response, err
	}
	return nil, nil
}

// store has the CRD store a version, and serve all that an installer of this version serves.
func (s *scene) store(name string) {
	s.b.Event("  meanwhile a client installs the CRD with %s as the storage version", name)
	crd, err := s.crds.Get(s.b.Context(), s.crd.Name, metav1.GetOptions{})
	s.must("reading the CRD", err)
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		version.Storage = version.Name == name
		version.Served = version.Name == newer || name == older
	}
	_, err = s.crds.Update(s.b.Context(), crd, metav1.UpdateOptions{})
	s.must("updating the CRD", err)
	s.settle()
}

// settle waits until the API server uses the CRD as it is. Reader's code cannot see when that is.
func (s *scene) settle() {
	s.b.Eventually(patience, func() string {
		crd, err := s.crds.Get(s.b.Context(), s.crd.Name, metav1.GetOptions{})
		s.must("reading the CRD", err)
		for _, version := range crd.Spec.Versions {
			_, err := s.kettles(version.Name, metav1.NamespaceDefault).Patch(s.b.Context(), canary, types.MergePatchType, []byte(`{}`),
				metav1.PatchOptions{})
			if (err == nil) != version.Served {
				return fmt.Sprintf("the CRD has served: %t for %s, and a patch there comes to: %v", version.Served, version.Name, err)
			}
			if version.Served && version.Storage && s.storedAs(canary) != version.Name {
				return "the API server does not store in the version of the CRD"
			}
		}
		return ""
	})
}

// storedAs is the version in which etcd has the Kettle of this name.
func (s *scene) storedAs(name string) string {
	for _, kettle := range kube.Stored(s.b, kettles) {
		if kettle.GetName() == name {
			return kettle.GroupVersionKind().Version
		}
	}
	return ""
}

// outdated are the names of the Kettles that are stored as v1alpha1.
func (s *scene) outdated() []string {
	var names []string
	for _, kettle := range kube.Stored(s.b, kettles) {
		if kettle.GroupVersionKind().Version == older {
			names = append(names, kettle.GetName())
		}
	}
	slices.Sort(names)
	return names
}

// notTooEarly asserts that no Kettle is stored in a version that status.storedVersions does not have.
func (s *scene) notTooEarly() {
	crd, err := s.crds.Get(s.b.Context(), s.crd.Name, metav1.GetOptions{})
	s.must("reading the CRD", err)
	if names := s.outdated(); len(names) > 0 && !slices.Contains(crd.Status.StoredVersions, older) && !s.b.Failed() {
		s.b.Errorf("status.storedVersions does not have v1alpha1 any more, and these Kettles are stored in it: %v", names)
	}
}
