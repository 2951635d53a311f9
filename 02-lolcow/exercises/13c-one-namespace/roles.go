package onenamespace

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
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
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const lolcows = "my.domain"

// The user that the operator's requests are from.
const account = "system:serviceaccount:meadow:cowherd"

// permission is one verb on one resource.
type permission struct{ verb, group, resource string }

func (p permission) String() string {
	return strings.TrimSuffix(p.verb+" "+p.resource+"."+p.group, ".")
}

// in is the permission in one namespace.
func (p permission) in(namespace string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Namespace: namespace, Verb: p.verb, Group: p.group, Resource: p.resource}
}

func newClient(b *check.B) client.Client {
	c, err := client.New(kube.Config(b), client.Options{Scheme: lab.Scheme()})
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	return c
}

// apply creates what is in a file, and waits until the API server has seen it.
func apply(b *check.B, file string) {
	create(b, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: meadow}})
	content, err := os.ReadFile(file)
	if err != nil {
		b.Fatalf("there is no role.yaml in your folder: %v", err)
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		part, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal(part, &object.Object)
		}
		if err != nil {
			b.Fatalf("role.yaml: %v", err)
		}
		if len(object.Object) > 0 {
			b.Event("kubectl apply: %s %s", object.GetKind(), object.GetName())
			create(b, object)
		}
	}
	sentinels(b)
}

func create(b *check.B, object client.Object) {
	if err := newClient(b).Create(b.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
		b.Fatalf("applying %s: %v", object.GetName(), err)
	}
}

// sentinels waits for the API server, which authorizes by what its watches have delivered: what was created last is delivered last.
func sentinels(b *check.B) {
	meta := metav1.ObjectMeta{Name: "sentinel", Namespace: meadow}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"sentinels"}, Verbs: []string{"get"}}}
	subject := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	}
	role := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: "sentinel"}
	}
	create(b, &rbacv1.Role{ObjectMeta: meta, Rules: rules})
	create(b, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role("Role"), Subjects: subject("in-meadow")})
	meta.Namespace = ""
	create(b, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
	create(b, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: role("ClusterRole"), Subjects: subject("everywhere")})
	for _, user := range []string{"in-meadow", "everywhere"} {
		kube.WaitAllowed(b, user, permission{"get", "example.com", "sentinels"}.in(meadow))
	}
}

// permits asks the API server, as kubectl auth can-i does, for a namespace.
func permits(b *check.B, namespace string, one permission) bool {
	yes := kube.Allowed(b, account, one.in(namespace))
	b.Event("cowherd may %s in %s: %t", one, namespace, yes)
	return yes
}
