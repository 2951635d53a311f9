package lesson_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

// ran is the result of a run, as the user sees it.
type ran struct {
	code        int
	out, errOut string
}

func runLesson(program lesson.Lesson, args ...string) ran {
	var out, errOut bytes.Buffer
	code := lesson.Run(program, args, &out, &errOut)
	return ran{code, out.String(), errOut.String()}
}

// unreached returns a lesson that must not be run.
func unreached(t *testing.T) lesson.Lesson {
	t.Helper()
	return lesson.Lesson{Name: "demo", Shows: "Shows nothing.", Run: func(context.Context, *lesson.Env) {
		t.Error("the lesson was run")
	}}
}

func TestHelpIsOutputAndNotAnError(t *testing.T) {
	t.Parallel()
	NewWithT(t).Expect(runLesson(unreached(t), "--help")).To(Equal(ran{0, `Shows nothing.

Usage: go run ./demo [flags]

Flags:
  --kubeconfig FILE
      the kubeconfig FILE to use (default: the workbook's own, which "make cluster" writes)
`, ""}))
}

func TestNamespaceExistsDuringTheRunAndIsDeletedAfterIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		code int
		want string
	}{
		"success": {nil, 0, ""},
		"error":   {errors.New("failed"), 1, "demo: failed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var namespace string
			program := lesson.Lesson{Name: "demo", Run: func(ctx context.Context, env *lesson.Env) {
				namespace = env.Namespace
				env.Printf("in %s\n", env.Namespace)
				env.CreatePods(ctx, "a")
				lesson.Check(test.err)
			}}
			got := runLesson(program, "--kubeconfig", testserver.Kubeconfig(t, testserver.Config(t)))
			g.Expect(got).To(Equal(ran{test.code, "in " + namespace + "\n", test.want}))
			g.Expect(namespace).To(HavePrefix("demo-"))
			expectDeleted(t, namespace)
		})
	}
}

// expectDeleted asserts that a namespace was deleted. Without the namespace controller it stays Terminating.
func expectDeleted(t *testing.T, name string) {
	t.Helper()
	namespace, err := testserver.Client(t).CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(namespace.Status.Phase).To(Equal(corev1.NamespaceTerminating))
}

// The error names the namespace, so that the user can delete it.
func TestNamespaceThatCannotBeDeletedIsAnError(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	name := testserver.Namespace(t) // A name that is unique on the server.
	testserver.Allow(t, name, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create"}})
	var namespace string
	program := lesson.Lesson{Name: "demo", Run: func(_ context.Context, env *lesson.Env) {
		namespace = env.Namespace
	}}
	file := testserver.Kubeconfig(t, testserver.User(t, name))
	var got ran
	// The server's authorizer has the role a moment after it was created.
	g.Eventually(func() string {
		got = runLesson(program, "--kubeconfig", file)
		return namespace
	}).WithTimeout(10 * time.Second).ShouldNot(BeEmpty())
	g.Expect(got.code).To(Equal(1))
	g.Expect(got.errOut).To(ContainSubstring("deleting the namespace " + namespace + ", which was created for this run: "))
}
