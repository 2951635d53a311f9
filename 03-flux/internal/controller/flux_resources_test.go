package controller

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/03-flux/api/v1alpha1"
)

func fluxWith(spec v1alpha1.FluxSpec) *v1alpha1.Flux {
	return &v1alpha1.Flux{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "flux-uid", Generation: 1},
		Spec:       spec,
	}
}

func TestFirstSetupResolvesAllDefaults(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	flux := fluxWith(v1alpha1.FluxSpec{Image: "img", Command: []string{"a", "", "$b"}})
	setup := firstSetup(flux)

	g.Expect(setup.Spec).To(Equal(v1alpha1.FluxSetupSpec{
		Image: "img", Command: []string{"a", "", "$b"}, Mode: v1alpha1.ModeSubmit,
		Size: 1, MinSize: 1, Tasks: 1, Cores: 1,
		Template: v1alpha1.PodTemplate{
			SecurityContext: &corev1.PodSecurityContext{
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			ContainerSecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		},
		Broker:                v1alpha1.Broker{Port: 8050, ConnectTimeout: "5s", LogLevel: new(int32(3))},
		StartupTimeoutSeconds: 300,
		Attempt:               1,
	}))
	g.Expect(setup.Name).To(Equal("job"))
	g.Expect(setup.Namespace).To(Equal("ns"))
	g.Expect(metav1.IsControlledBy(setup, flux)).To(BeTrue())
	g.Expect(*metav1.GetControllerOf(setup).BlockOwnerDeletion).To(BeTrue())
	g.Expect(flux.Spec).To(Equal(v1alpha1.FluxSpec{Image: "img", Command: []string{"a", "", "$b"}}), "the object in the cache is not changed")
}

func TestFirstSetupCopiesTheSpec(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	given := v1alpha1.FluxSpec{
		Image: "img", Command: []string{"a"}, Size: 8, Tasks: new(int32(20)), MinSize: new(int32(3)), Mode: v1alpha1.ModeLauncher,
		Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
		Template: &v1alpha1.PodTemplate{
			Labels: map[string]string{"a": "b"}, Env: []corev1.EnvVar{{Name: "A"}}, PriorityClassName: "high",
			ContainerSecurityContext: &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)},
		},
		Suspend: true, StartupTimeoutSeconds: 7, ActiveDeadlineSeconds: new(int64(9)),
		Broker: &v1alpha1.Broker{Port: 9000, ConnectTimeout: "1s", LogLevel: new(int32(0))},
	}
	spec := firstSetup(fluxWith(given)).Spec
	g.Expect(spec.Size).To(Equal(int32(8)))
	g.Expect(spec.Tasks).To(Equal(int32(20)))
	g.Expect(spec.MinSize).To(Equal(int32(3)))
	g.Expect(spec.Mode).To(Equal(v1alpha1.ModeLauncher))
	g.Expect(spec.Resources).To(Equal(*given.Resources))
	g.Expect(spec.Template.ContainerSecurityContext).To(Equal(given.Template.ContainerSecurityContext), "a given security context is not merged with the default")
	spec.Template.SecurityContext, spec.Template.ContainerSecurityContext = nil, given.Template.ContainerSecurityContext
	g.Expect(spec.Template).To(Equal(*given.Template))
	g.Expect(spec.Broker).To(Equal(*given.Broker), "a log level of 0 is kept")
	g.Expect(spec.Suspend).To(BeTrue())
	g.Expect(spec.StartupTimeoutSeconds).To(Equal(int32(7)))
	g.Expect(*spec.ActiveDeadlineSeconds).To(Equal(int64(9)))
}

func TestPodSecurityContext(t *testing.T) {
	t.Parallel()
	runtimeDefault := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	unconfined := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	for name, test := range map[string]struct{ given, want *corev1.PodSecurityContext }{
		"unset": {nil, &corev1.PodSecurityContext{SeccompProfile: runtimeDefault}},
		"without a seccomp profile": {
			&corev1.PodSecurityContext{RunAsUser: new(int64(1000))},
			&corev1.PodSecurityContext{RunAsUser: new(int64(1000)), SeccompProfile: runtimeDefault},
		},
		"with a seccomp profile": {
			&corev1.PodSecurityContext{SeccompProfile: unconfined},
			&corev1.PodSecurityContext{SeccompProfile: unconfined},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flux := fluxWith(v1alpha1.FluxSpec{Template: &v1alpha1.PodTemplate{SecurityContext: test.given}})
			NewWithT(t).Expect(firstSetup(flux).Spec.Template.SecurityContext).To(Equal(test.want))
		})
	}
}

func TestCoresPerRank(t *testing.T) {
	t.Parallel()
	cpus := func(quantity string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
	}
	for name, test := range map[string]struct {
		spec v1alpha1.FluxSpec
		want int32
	}{
		"one task a rank":            {v1alpha1.FluxSpec{Size: 4}, 1},
		"two tasks a rank":           {v1alpha1.FluxSpec{Size: 4, Tasks: new(int32(8))}, 2},
		"not even":                   {v1alpha1.FluxSpec{Size: 4, Tasks: new(int32(9))}, 3},
		"on the quorum alone":        {v1alpha1.FluxSpec{Size: 4, MinSize: new(int32(3)), Tasks: new(int32(8))}, 3},
		"tasks of a launcher":        {v1alpha1.FluxSpec{Size: 4, Tasks: new(int32(8)), Mode: v1alpha1.ModeLauncher}, 1},
		"limit":                      {v1alpha1.FluxSpec{Size: 4, Resources: &corev1.ResourceRequirements{Limits: cpus("4"), Requests: cpus("2")}}, 4},
		"limit, rounded up":          {v1alpha1.FluxSpec{Size: 4, Resources: &corev1.ResourceRequirements{Limits: cpus("2500m")}}, 3},
		"request":                    {v1alpha1.FluxSpec{Size: 4, Resources: &corev1.ResourceRequirements{Requests: cpus("2")}}, 2},
		"less than a core":           {v1alpha1.FluxSpec{Size: 4, Resources: &corev1.ResourceRequirements{Limits: cpus("100m")}}, 1},
		"limit below what tasks use": {v1alpha1.FluxSpec{Size: 1, Tasks: new(int32(8)), Resources: &corev1.ResourceRequirements{Limits: cpus("2")}}, 8},
		"launcher with a limit":      {v1alpha1.FluxSpec{Size: 4, Mode: v1alpha1.ModeLauncher, Resources: &corev1.ResourceRequirements{Limits: cpus("6")}}, 6},
		"more than there can be":     {v1alpha1.FluxSpec{Size: 4, Resources: &corev1.ResourceRequirements{Limits: cpus("9G")}}, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			NewWithT(t).Expect(firstSetup(fluxWith(test.spec)).Spec.Cores).To(Equal(test.want))
		})
	}
}

// The constants of this package must match the defaults of the CRD.
func TestDefaultsMatchTheCRD(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	bare := &v1alpha1.Flux{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace},
		Spec:       v1alpha1.FluxSpec{Image: "img", Command: []string{"a"}},
	}
	want := firstSetup(bare.DeepCopy()).Spec
	w.Expect(w.client.Create(w.ctx, bare)).To(Succeed())
	w.Expect(bare.Spec.Broker).NotTo(BeNil(), "the API server fills it in")
	w.Expect(firstSetup(bare).Spec).To(Equal(want))
}

func TestNextSetupKeepsWhatWasResolved(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	flux := fluxWith(jobSpec(withRestarts(3)))
	live := firstSetup(flux)
	live.UID, live.ResourceVersion = "setup-uid", "7"
	live.Spec.Cores = 5 // as another version of the operator saw it
	live.Spec.Attempt, live.Spec.Restarts = 3, 1
	live.Spec.Launch = &v1alpha1.Launch{Attempt: 3}
	before := live.DeepCopy()
	flux.Spec.Suspend, flux.Spec.StartupTimeoutSeconds, flux.Spec.ActiveDeadlineSeconds = true, 8, new(int64(9))

	next := nextSetup(flux, live)
	g.Expect(next.UID).To(Equal(types.UID("setup-uid")), "the write is bound to this object")
	g.Expect(next.ResourceVersion).To(Equal("7"), "and to this state of it")
	g.Expect(next.Spec.Launch).To(BeNil())
	want := before.Spec.DeepCopy()
	want.Launch, want.Suspend, want.StartupTimeoutSeconds, want.ActiveDeadlineSeconds = nil, true, 8, new(int64(9))
	g.Expect(next.Spec).To(Equal(*want))
	g.Expect(live).To(Equal(before), "the object in the cache is not changed")
}

func TestConfigurationNamesWhatIsOurs(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	sent := func(setup *v1alpha1.FluxSetup) map[string]any {
		text, err := json.Marshal(applyConfigurationOf(setup))
		g.Expect(err).NotTo(HaveOccurred())
		var fields map[string]any
		g.Expect(json.Unmarshal(text, &fields)).To(Succeed())
		return fields
	}
	flux := fluxWith(jobSpec())
	first := sent(firstSetup(flux))
	g.Expect(first).To(And(HaveLen(4),
		HaveKeyWithValue("kind", "FluxSetup"), HaveKeyWithValue("apiVersion", "flux-framework.org/v1alpha1")))
	g.Expect(first["metadata"]).To(Equal(map[string]any{"name": "job", "namespace": "ns", "ownerReferences": []any{map[string]any{
		"apiVersion": "flux-framework.org/v1alpha1", "kind": "Flux", "name": "job", "uid": "flux-uid",
		"controller": true, "blockOwnerDeletion": true,
	}}}))
	g.Expect(first["spec"]).To(And(
		HaveKeyWithValue("restarts", BeEquivalentTo(0)), HaveKeyWithValue("suspend", false), HaveKey("resources"),
		Not(HaveKey("launch")), HaveKeyWithValue("activeDeadlineSeconds", BeNil())))

	live := firstSetup(flux)
	live.UID, live.ResourceVersion, live.Status.Attempt = "setup-uid", "7", 1
	next := sent(nextSetup(flux, live))
	g.Expect(next["metadata"]).To(And(HaveLen(5), HaveKeyWithValue("uid", "setup-uid"), HaveKeyWithValue("resourceVersion", "7")))
	g.Expect(next["spec"]).To(Equal(first["spec"]))
}
