package lostmarkers

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/02-lolcow/exercises/internal/program"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// The namespace of the operator, its ServiceAccount, which need not exist, and another one.
const (
	namespace = "meadow"
	account   = "system:serviceaccount:meadow:cowbell"
	another   = "system:serviceaccount:default:cowbell"
)

// manifests runs make manifests, which writes into another folder than the reader's, and returns the role.
func manifests(b *check.B, dir string) rbacv1.ClusterRole {
	output, err := os.MkdirTemp("", "role-")
	if err != nil {
		b.Fatalf("%v", err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(output) })
	cmd := exec.CommandContext(b.Context(), "make", "-s", "manifests", "OUTPUT="+output, "CONTROLLER_GEN="+generator(b, dir))
	cmd.Dir = dir
	cmd.Env = program.Environment()
	text, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(text)) {
		b.Event("%s", strings.TrimRight(line, "\n"))
	}
	if err != nil {
		b.Fatalf("make manifests fails: %v\n%s", err, bytes.TrimSpace(text))
	}
	if _, err := os.Stat(filepath.Join(output, "role.yaml")); err != nil {
		b.Fatalf("make manifests writes no role.yaml into $(OUTPUT): either the Makefile names another folder, or no package that it names has " +
			"a marker; in work/, the pattern ./... names none")
	}
	return read(b, filepath.Join(output, "role.yaml"))
}

// generator returns the controller-gen that this repository pins. It is built if it has to be.
func generator(b *check.B, dir string) string {
	root := dir
	for {
		if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
			break
		}
		if filepath.Dir(root) == root {
			b.Fatalf("%s is not in the workbook: there is no go.work above it", dir)
		}
		root = filepath.Dir(root)
	}
	cmd := exec.CommandContext(b.Context(), "go", "-C", filepath.Join(root, "scripts", "tools"), "tool", "-n", "controller-gen")
	cmd.Env = program.Environment()
	path, err := cmd.Output()
	if err != nil {
		failure, _ := errors.AsType[*exec.ExitError](err)
		if failure != nil {
			b.Fatalf("building controller-gen: %v\n%s", err, failure.Stderr)
		}
		b.Fatalf("building controller-gen: %v", err)
	}
	return "'" + strings.TrimSpace(string(path)) + "'"
}

// apply creates what is in config/, and waits until the API server has seen it.
func apply(b *check.B, dir string) {
	c, err := client.New(kube.Config(b), client.Options{Scheme: lab.Scheme()})
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	create(b, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	files, err := filepath.Glob(filepath.Join(dir, "config", "*.yaml"))
	if err != nil || len(files) == 0 {
		b.Fatalf("there are no manifests in config/: %v", err)
	}
	for _, file := range files {
		for _, object := range objects(b, file) {
			b.Event("kubectl apply: %s %s", object.GetKind(), object.GetName())
			create(b, c, object)
		}
	}
	// The API server authorizes by what its watches have delivered. What was created last is delivered last.
	last := permission{"get", "example.com", "sentinels"}
	create(b, c, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "sentinel"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{last.group}, Resources: []string{last.resource}, Verbs: []string{last.verb}}},
	})
	create(b, c, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "sentinel"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "sentinel"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "sentinel"}},
	})
	kube.WaitAllowed(b, "sentinel", authorizationv1.ResourceAttributes{Verb: last.verb, Group: last.group, Resource: last.resource})
}

func create(b *check.B, c client.Client, object client.Object) {
	if err := c.Create(b.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
		b.Fatalf("applying %s: %v", object.GetName(), err)
	}
}

// objects are those of a manifest.
func objects(b *check.B, file string) []*unstructured.Unstructured {
	content, err := os.ReadFile(file)
	if err != nil {
		b.Fatalf("%v", err)
	}
	var all []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		part, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal(part, &object.Object)
		}
		if err != nil {
			b.Fatalf("%s: %v", filepath.Base(file), err)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// allowed asks the API server, as kubectl auth can-i does, for all namespaces.
func allowed(b *check.B, user string, one permission) bool {
	yes := kube.Allowed(b, user, authorizationv1.ResourceAttributes{Verb: one.verb, Group: one.group, Resource: one.resource})
	if yes {
		b.Event("%s may %s", user, one)
	} else {
		b.Event("%s may not %s", user, one)
	}
	return yes
}
