package testserver_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/01-informers/internal/connect"
	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestTheCRDOfFooIsInstalled(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	resources, err := testserver.Client(t).Discovery().ServerResourcesForGroupVersionWithContext(t.Context(), "samplecontroller.example.com/v1alpha1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resources.APIResources).To(ContainElement(HaveField("Kind", "Foo")))
}

func TestNamespacesAreNotShared(t *testing.T) {
	t.Parallel()
	NewWithT(t).Expect(testserver.Namespace(t)).NotTo(Equal(testserver.Namespace(t)))
}

func TestUserHasNoPermissions(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	client, err := kubernetes.NewForConfig(testserver.User(t, "someone"))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().Pods(testserver.Namespace(t)).List(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	g.Expect(err).To(MatchError(ContainSubstring(`User "someone"`)))
}

func TestKubeconfigHasTheSameAccess(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	config, err := connect.Config(testserver.Kubeconfig(t, testserver.Config(t)))
	g.Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

func TestAuditLogHoldsWritesOnly(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	namespace := testserver.Namespace(t)
	pods := testserver.Client(t).CoreV1().Pods(namespace)
	_, err := pods.Create(t.Context(), lesson.Pod("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = pods.Get(t.Context(), "a", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pods.Delete(t.Context(), "a", metav1.DeleteOptions{})).To(Succeed())

	g.Eventually(func(g Gomega) {
		content, err := os.ReadFile(testserver.AuditLog(t))
		g.Expect(err).NotTo(HaveOccurred())
		var verbs []string
		for line := range strings.Lines(string(content)) {
			var entry struct {
				Verb      string
				ObjectRef struct{ Resource, Namespace string }
			}
			g.Expect(json.Unmarshal([]byte(line), &entry)).To(Succeed(), line)
			if entry.ObjectRef.Resource == "pods" && entry.ObjectRef.Namespace == namespace {
				verbs = append(verbs, entry.Verb)
			}
		}
		g.Expect(verbs).To(Equal([]string{"create", "delete"}))
	}).Should(Succeed())
}

func TestLessonParsesFlagsAndHasADeadline(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var pods int
	program := lesson.Lesson{
		Name:  "demo",
		Flags: func(flags *flag.FlagSet) { flags.IntVar(&pods, "pods", 1, "") },
		Run: func(ctx context.Context, env *lesson.Env) error {
			_, hasDeadline := ctx.Deadline()
			g.Expect(hasDeadline).To(BeTrue(), "a lesson that hangs fails its test")
			env.Printf("%d pods\n", pods)
			return env.CreatePods(ctx, "a")
		},
	}
	g.Expect(testserver.Lesson(t, program, "--pods", "3")).To(Equal("3 pods\n"))
	_, err := testserver.Lesson(t, program, "--nope")
	g.Expect(err).To(HaveOccurred())
}
