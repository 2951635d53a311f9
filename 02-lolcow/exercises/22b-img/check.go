// Package img is exercise 22b: a kustomization that names the images of a release.
package img

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// files are those that the reader begins with.
//
//go:embed start
var files embed.FS

// The reader writes what is in config/release.
const (
	ours   = "default"
	yours  = "release"
	prefix = "config/" + yours + "/"
)

// The names of the Deployment, of its container, and of the images that it has to have.
const (
	namespace  = "lolcow-system"
	deployment = "lolcow-controller-manager"
	container  = "manager"
	operator   = "registry.farm.example:5000/lolcow-operator:v1.4.0"
	lolcow     = "registry.farm.example:5000/lolcow:v1.4.0"
	related    = "RELATED_IMAGE_"
)

// variables have the images of Pods that the operator starts.
var variables = []corev1.EnvVar{{Name: related + "OPERATOR", Value: operator}, {Name: related + "LOLCOW", Value: lolcow}}

// Check builds and applies config/release, and looks at the Deployment.
func Check(t *check.T, work check.Work[check.Files]) {
	var release *appsv1.Deployment
	ok := t.Behaviour("config/release can be built and applied", func(b *check.B) { release = apply(b, work.Dir, yours) })
	if !ok {
		return
	}
	t.Behaviour("the container of the operator has the image of the release", func(b *check.B) {
		if one := find(b, release); one.Image != operator {
			b.Fatalf("the image of the container is %s", one.Image)
		}
	})
	for _, want := range variables {
		t.Behaviour("the variable "+want.Name+" names the image of the release", func(b *check.B) {
			env := find(b, release).Env
			at := slices.IndexFunc(env, func(one corev1.EnvVar) bool { return one.Name == want.Name })
			if at < 0 || env[at].Value == "" {
				b.Fatalf("the container has no variable %s with a value", want.Name)
			}
			if env[at].Value != want.Value {
				b.Fatalf("the value of %s is %s", want.Name, env[at].Value)
			}
		})
	}
	t.Behaviour("all else is as in config/default", func(b *check.B) {
		development := apply(b, work.Dir, ours)
		if !apiequality.Semantic.DeepEqual(rest(development), rest(release)) {
			b.Fatalf("config/release changes more of the Deployment than its images")
		}
	})
	t.Behaviour("what is changed in config/manager later is in the release, too", func(b *check.B) { follows(b, work.Dir) })
	t.Behaviour("git diff is clean: no other file has changed", func(b *check.B) { unchanged(b, work.Dir) })
}

// apply builds a folder of config/, creates its objects in a namespace of their own, and returns the Deployment that is there then.
func apply(b *check.B, dir, overlay string) *appsv1.Deployment {
	objects, err := deploy.Render(dir, overlay, nil)
	if err != nil {
		b.Fatalf("%v", err)
	}
	if names := namesOf(objects); names != "Deployment "+deployment+", ServiceAccount "+deployment {
		b.Fatalf("config/%s has other objects than config/manager: %s", overlay, names)
	}
	c, err := client.New(kube.Config(b), client.Options{Scheme: lab.Scheme()})
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	key := client.ObjectKey{Namespace: kube.Namespace(b), Name: deployment}
	for _, object := range objects {
		if object.GetNamespace() != namespace {
			b.Fatalf("config/%s puts its %s into the namespace %q, and not into %s", overlay, object.GetKind(), object.GetNamespace(), namespace)
		}
		object.SetNamespace(key.Namespace)
		if err := c.Create(b.Context(), object); err != nil {
			b.Fatalf("applying config/%s: %v", overlay, err)
		}
	}
	var applied appsv1.Deployment
	if err := c.Get(b.Context(), key, &applied); err != nil {
		b.Fatalf("reading the Deployment: %v", err)
	}
	return &applied
}

// namesOf returns the kinds and names of objects, in an order of its own.
func namesOf(objects []*unstructured.Unstructured) string {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetKind()+" "+object.GetName())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// find returns the container of the operator.
func find(b *check.B, from *appsv1.Deployment) *corev1.Container {
	containers := from.Spec.Template.Spec.Containers
	at := slices.IndexFunc(containers, func(one corev1.Container) bool { return one.Name == container })
	if at < 0 {
		b.Fatalf("the Deployment has no container %s", container)
	}
	return &containers[at]
}

// rest returns a Deployment without what differs between two releases: the images of the operator, and the order of containers and
// variables.
func rest(of *appsv1.Deployment) *appsv1.Deployment {
	left := &appsv1.Deployment{Spec: *of.Spec.DeepCopy()}
	left.Name, left.Labels, left.Annotations = of.Name, of.Labels, of.Annotations
	containers := left.Spec.Template.Spec.Containers
	slices.SortFunc(containers, func(a, b corev1.Container) int { return cmp.Compare(a.Name, b.Name) })
	for i := range containers {
		if containers[i].Name == container {
			containers[i].Image = ""
			// It follows from the tag.
			containers[i].ImagePullPolicy = ""
		}
		slices.SortFunc(containers[i].Env, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
		for j := range containers[i].Env {
			same := func(one corev1.EnvVar) bool { return one.Name == containers[i].Env[j].Name }
			if slices.ContainsFunc(variables, same) {
				containers[i].Env[j].Value = ""
			}
		}
	}
	return left
}

// later is what changes in config/default after the release was written. A file that does not have the text stays as it is.
var later = []struct{ file, before, after string }{
	{"manager/manager.yaml", "replicas: 1", "replicas: 3"},
	{"manager/manager.yaml", "Hello from lolcow", "Hello from the farm"},
	{"manager/manager.yaml", "256Mi", "512Mi"},
	{
		"manager/manager.yaml", "        - name: RELATED_IMAGE_OPERATOR\n",
		"        - name: RELATED_IMAGE_PROXY\n          value: proxy:latest\n        - name: RELATED_IMAGE_OPERATOR\n",
	},
	{
		"manager/manager.yaml", "      - name: manager\n",
		"      - name: proxy\n        image: proxy:latest\n      - name: manager\n",
	},
	{"default/kustomization.yaml", "resources:\n", "commonAnnotations:\n  " + annotation + ": \"yes\"\n\nresources:\n"},
}

// annotation is one that all objects of config/default have later.
const annotation = "example.com/later"

// change returns a copy of the folder, in which config/default has changed.
func change(b *check.B, dir string) string {
	temp, err := os.MkdirTemp("", "img-")
	if err != nil {
		b.Fatalf("%v", err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(temp) })
	// Errors name the last folder of its path.
	changed := filepath.Join(temp, "later")
	if err := os.CopyFS(filepath.Join(changed, "config"), os.DirFS(filepath.Join(dir, "config"))); err != nil {
		b.Fatalf("copying config: %v", err)
	}
	for _, one := range later {
		file := filepath.Join(changed, "config", filepath.FromSlash(one.file))
		content, err := os.ReadFile(file)
		if err != nil {
			b.Fatalf("reading config/%s: %v", one.file, errors.Unwrap(err))
		}
		if err := os.WriteFile(file, bytes.Replace(content, []byte(one.before), []byte(one.after), 1), 0o600); err != nil {
			b.Fatalf("writing config/%s: %v", one.file, errors.Unwrap(err))
		}
	}
	return changed
}

// render builds a folder of config/, and returns its Deployment.
func render(b *check.B, dir, overlay string) *appsv1.Deployment {
	objects, err := deploy.Render(dir, overlay, nil)
	if err != nil {
		b.Fatalf("%v", err)
	}
	at := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == "Deployment" })
	if at < 0 {
		b.Fatalf("config/%s has no Deployment any more", overlay)
	}
	var built appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[at].Object, &built); err != nil {
		b.Fatalf("the Deployment of config/%s: %v", overlay, err)
	}
	return &built
}

// follows builds the release of a copy in which config/default has changed.
func follows(b *check.B, dir string) {
	changed := change(b, dir)
	development, release := render(b, changed, ours), render(b, changed, yours)
	if wanted, got := ptr.Deref(development.Spec.Replicas, 1), ptr.Deref(release.Spec.Replicas, 1); got != wanted {
		b.Fatalf("config/manager/manager.yaml asks for %d replicas now, and config/release for %d", wanted, got)
	}
	if release.Annotations[annotation] != development.Annotations[annotation] {
		b.Fatalf("config/default gives all objects an annotation now, and the Deployment of config/release does not have it")
	}
	if !apiequality.Semantic.DeepEqual(rest(development), rest(release)) {
		b.Fatalf("config/manager has changed, and config/release changes more of the Deployment than its images now")
	}
	env := find(b, release).Env
	for _, before := range find(b, render(b, dir, yours)).Env {
		same := func(now corev1.EnvVar) bool { return now.Name == before.Name && now.Value == before.Value }
		if strings.HasPrefix(before.Name, related) && !slices.ContainsFunc(env, same) {
			b.Fatalf("config/manager has a new variable, and config/release sets %s to another value now", before.Name)
		}
	}
}

// unchanged compares the files that are not the reader's to change.
func unchanged(b *check.B, dir string) {
	err := fs.WalkDir(files, "start", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := strings.TrimPrefix(path, "start/")
		if strings.HasPrefix(name, prefix) {
			return nil
		}
		before, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		now, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		switch {
		case os.IsNotExist(err):
			b.Errorf("%s is gone", name)
		case err != nil:
			return err
		case !bytes.Equal(before, now):
			b.Errorf("%s has changed: who deploys config/default now gets the release, and so does each later release", name)
		}
		return nil
	})
	if err != nil {
		b.Fatalf("comparing the files: %v", err)
	}
}
