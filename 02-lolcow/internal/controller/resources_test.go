package controller

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// expand does to an argument what the kubelet does: $(NAME) is replaced, $$ is one $
// (k8s.io/kubernetes/third_party/forked/golang/expansion/expand.go).
func expand(arg string) string {
	const escaped = "\x01"
	arg = strings.ReplaceAll(arg, "$$", escaped)
	arg = strings.ReplaceAll(arg, "$(HOSTNAME)", "cow-1")
	return strings.ReplaceAll(arg, escaped, "$")
}

func TestGreetingReachesTheServerAsWritten(t *testing.T) {
	t.Parallel()
	for name, greeting := range map[string]string{
		"plain":         "Hello, this is a message from the lolcow!",
		"HTML":          `<script>alert("moo")</script>`,
		"shell":         "; rm -rf / && $(reboot) `id` | tee > /dev/null",
		"variable":      "$(HOSTNAME) $HOSTNAME $$(HOSTNAME) $$$",
		"dash":          "--help",
		"double dash":   "--",
		"newlines":      "one\ntwo\r\nthree\n",
		"quotes":        `"it's"`,
		"emoji":         "\U0001F42E moo",
		"blank":         "   ",
		"longest":       strings.Repeat("$", 1024),
		"backslash tab": "a\\tb\tc",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			args := greetingArgs(greeting)
			g.Expect(args).To(HaveLen(2))
			g.Expect(args[0]).To(Equal("--"))
			g.Expect(expand(args[1])).To(Equal(greeting), "what the server is given")
			g.Expect(greetingFromArgs(args)).To(Equal(greeting), "what the status tells")
		})
	}
	g := NewWithT(t)
	g.Expect(greetingArgs("")).To(Equal([]string{"--"}), "the server picks a fortune")
	g.Expect(greetingFromArgs(greetingArgs(""))).To(BeEmpty())
}

func TestDesiredDeployment(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	lolcow := &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: "meadow", UID: "1"},
		Spec:       v1alpha1.LolcowSpec{Replicas: new(int32(3))},
	}
	deployment := desiredDeployment(lolcow, serverImage)
	g.Expect(*deployment.Spec.Replicas).To(Equal(int32(3)))
	g.Expect(*deployment.Spec.Template.Spec.Containers[0].Image).To(Equal(serverImage))
	g.Expect(deployment.Spec.Selector.MatchLabels).To(Equal(selectorLabels(lolcow)))
	g.Expect(deployment.Spec.Template.Labels).To(HaveKeyWithValue(labelManagedBy, managedBy), "the cache selects pods by it")

	lolcow.Spec = v1alpha1.LolcowSpec{Image: "example.com/mine:1"}
	deployment = desiredDeployment(lolcow, serverImage)
	g.Expect(*deployment.Spec.Replicas).To(Equal(int32(1)))
	g.Expect(*deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("example.com/mine:1"))
}

// TestImagesTagDoesNotDecideForTheNext: a Deployment that was made with :latest, and says nothing of when to pull, gets
// "always" from the API server, and keeps it with every later image.
func TestImagesTagDoesNotDecideForTheNext(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{Image: "example.com/cow:latest"})
	for _, image := range []string{"example.com/cow:latest", "example.com/cow:v1", "example.com/cow"} {
		lolcow := f.get("cow")
		lolcow.Spec.Image = image
		f.Expect(f.client.Update(f.ctx, lolcow)).To(Succeed())
		f.reconcile("cow")
		container := f.deployment().Spec.Template.Spec.Containers[0]
		f.Expect(container.Image).To(Equal(image))
		f.Expect(container.ImagePullPolicy).To(Equal(corev1.PullIfNotPresent), image)
	}
}

func TestDesiredServiceNamesAPortOnlyIfTheSpecDoes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	lolcow := &v1alpha1.Lolcow{ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: "meadow"}}
	g.Expect(desiredService(lolcow).Spec.Ports[0].NodePort).To(BeNil())
	lolcow.Spec.Port = new(int32(30685))
	g.Expect(*desiredService(lolcow).Spec.Ports[0].NodePort).To(Equal(int32(30685)))
}

func TestTransform(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	meta := metav1.ObjectMeta{
		Name: "cow", Namespace: "meadow", UID: "1", ResourceVersion: "7",
		Annotations:   map[string]string{"large": "text"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "someone"}},
	}
	other := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "other"}, Ports: []corev1.ServicePort{{NodePort: 30001}},
	}}
	reduced, err := transform(other)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(reduced).To(Equal(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: "meadow", UID: "1", ResourceVersion: "7"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{NodePort: 30001}}},
	}))

	ours := &appsv1.Deployment{ObjectMeta: meta}
	ours.OwnerReferences = []metav1.OwnerReference{{APIVersion: "my.domain/v1alpha1", Kind: "Lolcow", Controller: new(true)}}
	kept, err := transform(ours)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept).To(BeIdenticalTo(ours), "managedFields say what we own")
}
