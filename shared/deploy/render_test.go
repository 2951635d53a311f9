package deploy

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/types"
)

const stage = "testdata/stage"

// fingerprint is a hash of every file of a folder and its name.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d %s", path, len(content), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func render(t *testing.T, overlay string, images Images) []*unstructured.Unstructured {
	t.Helper()
	objects, err := Render(stage, overlay, images)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func manager(t *testing.T, objects []*unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Deployment" })
	if i < 0 {
		t.Fatal("no Deployment was rendered")
	}
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRenderSetsImagesAndTouchesNoFile(t *testing.T) {
	before := fingerprint(t, stage)
	d := manager(t, render(t, "default", Images{
		"controller": "example.com:5000/workbook/manager:abc",
		"server":     "example.com/server@sha256:0123",
		// Nothing lists this one, so it is added to the overlay.
		"example.com/sidecar": "example.com/other:v2",
	}))
	containers := d.Spec.Template.Spec.Containers
	for _, c := range []struct{ what, got, want string }{
		{"the manager's image", containers[1].Image, "example.com:5000/workbook/manager:abc"},
		{"an image that no kustomization lists", containers[0].Image, "example.com/other:v2"},
		{"an image in a variable", containers[1].Env[0].Value, "example.com/server@sha256:0123"},
		{"a variable that only looks like it", containers[1].Env[1].Value, "server room"},
		{"the prefix", d.Name, "teapot-controller-manager"},
		{"the namespace", d.Namespace, "teapot-system"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, c.got, c.want)
		}
	}
	if after := fingerprint(t, stage); after != before {
		t.Error("rendering changed the stage's files")
	}
}

func TestRenderWithoutImagesLeavesThem(t *testing.T) {
	d := manager(t, render(t, "default", nil))
	if got := d.Spec.Template.Spec.Containers[1].Image; got != "controller:latest" {
		t.Errorf("got %s, want controller:latest", got)
	}
}

func TestRenderVariants(t *testing.T) {
	for overlay, want := range map[string][]string{
		"":             {"--metrics-bind-address=:8443"},
		DefaultOverlay: {"--metrics-bind-address=:8443"},
		"iced":         {"--metrics-bind-address=:8443", "--iced"},
	} {
		d := manager(t, render(t, overlay, Images{"controller": "example.com/manager:v1"}))
		c := d.Spec.Template.Spec.Containers[1]
		if !slices.Equal(c.Args, want) {
			t.Errorf("overlay %q: got arguments %q, want %q", overlay, c.Args, want)
		}
		// The image is set in the kustomization below, which a variant shares.
		if c.Image != "example.com/manager:v1" || d.Name != "teapot-controller-manager" {
			t.Errorf("overlay %q: got %s with image %s", overlay, d.Name, c.Image)
		}
	}
}

func TestRenderOrdersObjects(t *testing.T) {
	var kinds []string
	for _, object := range render(t, "default", nil) {
		kinds = append(kinds, object.GetKind())
	}
	if want := []string{"Namespace", "CustomResourceDefinition", "Deployment"}; !slices.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
}

func TestImageRefs(t *testing.T) {
	refs, err := ImageRefs(stage)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Images{"controller": "controller:latest", "server": "server:latest"}); !maps.Equal(refs, want) {
		t.Errorf("got %v, want %v", refs, want)
	}
}

func TestReferenceIsTheOppositeOfImage(t *testing.T) {
	for _, ref := range []string{"busybox", "busybox:1.37", "k3d-devregistry:5000/busybox", "k3d-devregistry:5000/a/b:v1", "example.com/a@sha256:0123"} {
		if got := reference(image("name", ref)); got != ref {
			t.Errorf("%s became %s", ref, got)
		}
	}
	if got := reference(types.Image{Name: "name", NewTag: "v1"}); got != "name:v1" {
		t.Errorf("an image without a new name is %s", got)
	}
}

func TestRenderSaysWhatIsMissing(t *testing.T) {
	if _, err := Render(t.TempDir(), "default", nil); err == nil {
		t.Error("a folder without config was rendered")
	}
	if _, err := Render(stage, "nowhere", nil); err == nil {
		t.Error("an overlay that does not exist was rendered")
	}
}

// A version that is no longer served has no objects to be listed: they would seem to be gone. And the one that is stored can be
// listed without the operator.
func TestTheKindOfACRDIsInTheVersionThatIsStored(t *testing.T) {
	version := func(name string, served, storage bool) any {
		return map[string]any{"name": name, "served": served, "storage": storage}
	}
	for want, versions := range map[string][]any{
		"v1":      {version("v1alpha1", false, false), version("v1", true, true)},
		"v1beta1": {version("v1alpha1", true, false), version("v1beta1", true, true), version("v1", true, false)},
		"v2":      {version("v1", false, true), version("v2", true, false), version("v3", true, false)},
	} {
		crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"group": "example.com", "names": map[string]any{"kind": "Teapot"}, "versions": versions,
		}}}
		if got, err := kindOf(crd); err != nil || got.Version != want {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
	}
}

func TestLoadedImagesAreNotPulled(t *testing.T) {
	objects, err := Render(stage, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := PreferLoaded(objects); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, object := range objects {
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		for _, one := range containers {
			if found++; one.(map[string]any)["imagePullPolicy"] != "IfNotPresent" {
				t.Errorf("%s: %v", describe(object), one)
			}
		}
	}
	if found == 0 {
		t.Error("no container was looked at")
	}
}
