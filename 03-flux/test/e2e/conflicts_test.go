package e2e

import (
	"fmt"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/expect"
)

var _ = Describe("An object that the Flux does not own", func() {
	isLeftUnchanged("Secret", func(meta metav1.ObjectMeta) client.Object {
		return &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"curve.cert": "other"}}
	})
	isLeftUnchanged("ConfigMap", func(meta metav1.ObjectMeta) client.Object {
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"broker.toml": "other"}}
	})
	isLeftUnchanged("Service", func(meta metav1.ObjectMeta) client.Object {
		return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "other"}, Ports: []corev1.ServicePort{{Port: 80}},
		}}
	})
	isLeftUnchanged("Job", func(meta metav1.ObjectMeta) client.Object {
		return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
			Suspend: new(true),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "other", Image: "example.com/other"}},
			}},
		}}
	})
	isLeftUnchanged("FluxSetup", func(meta metav1.ObjectMeta) client.Object { return unownedSetup(meta) })

	spec("ends the Flux if it is not deleted in time", func(w *testEnv) {
		other := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "taken"},
			Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
		}
		Expect(env.Client.Create(w.ctx, other)).To(Succeed())
		flux := w.create("taken", v1alpha1.FluxSpec{Command: sh("exit 0"), StartupTimeoutSeconds: 4, MaxRestarts: 1})
		Expect(w.failed(flux, v1alpha1.ReasonNameConflict)).To(ContainSubstring("Service"))
		Expect(flux.Status.Restarts).To(Equal(int32(1)))
		Expect(flux.Status.ExitCode).To(BeNil())
		version := other.ResourceVersion
		w.there(other)
		Expect(other.ResourceVersion).To(Equal(version))
	})
	spec("if it is a FluxSetup that a user creates, is not accepted, and nothing is created for it", func(w *testEnv) {
		setup := unownedSetup(metav1.ObjectMeta{Namespace: w.namespace, Name: "by-hand"})
		Expect(env.Client.Create(w.ctx, setup)).To(Succeed())
		until(w, setup, func(g Gomega, s *v1alpha1.FluxSetup) {
			condition(g, s.Status.Conditions, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonNotOwned)
		})
		Consistently(w.leftovers).WithTimeout(expect.SteadyState).WithPolling(expect.Interval).Should(ConsistOf("*v1alpha1.FluxSetup by-hand"))
	})
})

var _ = Describe("Fluxes", func() {
	It("of one name in two namespaces do not affect each other", func(ctx SpecContext) {
		one, other := newTestEnv(ctx), newTestEnv(ctx)
		succeeds := one.create("same", v1alpha1.FluxSpec{Command: sh(`echo "mine: one"`), Size: 2})
		fails := other.create("same", v1alpha1.FluxSpec{Command: sh(`echo "mine: other"; exit 3`), Size: 2})
		one.complete(succeeds)
		other.begin(fails)
		other.endLeader(fails, 3, "")
		other.failed(fails, v1alpha1.ReasonCommandFailed)
		first, second := secretOf(succeeds), secretOf(fails)
		one.there(first, second)
		Expect(first.Data).NotTo(Equal(second.Data))
		if env.Cluster.RunsContainers() {
			Expect(one.output(succeeds, "mine: ")).To(Equal([]string{"one", "one"}))
			Expect(other.output(fails, "mine: ")).To(ContainElement("other"))
		}
		one.delete(succeeds)
		one.gone(setupOf(succeeds), jobOf(succeeds))
		other.there(fails, setupOf(fails), jobOf(fails))
	})

	It("do not affect each other, twenty in one namespace", func(ctx SpecContext) {
		w := newTestEnv(ctx)
		var fluxes []*v1alpha1.Flux
		for i := range 20 {
			command := sh(fmt.Sprintf(`echo "mine: %d"; exit %d`, i, i))
			fluxes = append(fluxes, w.create(fmt.Sprintf("flux-%d", i), v1alpha1.FluxSpec{Command: command}))
		}
		for i, flux := range fluxes {
			w.begin(flux)
			w.endLeader(flux, int32(i), "")
		}
		for i, flux := range fluxes {
			if i == 0 {
				w.complete(flux)
			} else {
				w.failed(flux, v1alpha1.ReasonCommandFailed)
				Expect(flux.Status.ExitCode).To(HaveValue(Equal(int32(i))))
			}
			if env.Cluster.RunsContainers() {
				Expect(w.output(flux, "mine: ")).To(Equal([]string{strconv.Itoa(i)}))
			}
		}
	})
})

// isLeftUnchanged is a spec about an object of a Flux's name that existed before.
func isLeftUnchanged(kind string, other func(metav1.ObjectMeta) client.Object) {
	spec("of its name, a "+kind+", is a NameConflict, and is left unchanged", func(w *testEnv) {
		name := "taken"
		if kind == "Secret" || kind == "ConfigMap" || kind == "Job" {
			name = "taken-1" // each attempt has its own
		}
		object := other(metav1.ObjectMeta{Namespace: w.namespace, Name: name})
		Expect(env.Client.Create(w.ctx, object)).To(Succeed())
		flux := w.create("taken", v1alpha1.FluxSpec{Command: sh("exit 0"), Size: 2})
		conflict := w.has(flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
		Expect(conflict.Message).To(ContainSubstring(kind))
		Eventually(func() []string { return w.events(flux) }).WithTimeout(expect.Soon).Should(Equal([]string{"Warning NameConflict"}))
		// A FluxSetup that no Flux owns gets a status; nothing else of it may change.
		uid, generation, owners, fields := object.GetUID(), object.GetGeneration(), object.GetOwnerReferences(), object.GetManagedFields()
		always(w, object, func(g Gomega, o client.Object) {
			g.Expect(o.GetUID()).To(Equal(uid))
			g.Expect(o.GetGeneration()).To(Equal(generation))
			g.Expect(o.GetOwnerReferences()).To(Equal(owners))
			if kind != "FluxSetup" && kind != "Job" {
				g.Expect(o.GetManagedFields()).To(Equal(fields))
			}
		})
		Expect(w.pods(flux)).To(BeEmpty())

		w.delete(object)
		w.complete(flux)
	})
}

// unownedSetup is a FluxSetup as a user might create it, with the spec that the Flux controller would write.
func unownedSetup(meta metav1.ObjectMeta) *v1alpha1.FluxSetup {
	return &v1alpha1.FluxSetup{ObjectMeta: meta, Spec: v1alpha1.FluxSetupSpec{
		Image: env.Prepared, Command: sh("exit 0"), Mode: v1alpha1.ModeSubmit, Size: 1, MinSize: 1, Tasks: 1, Cores: 1,
		Broker:                v1alpha1.Broker{Port: 8050, ConnectTimeout: "5s", LogLevel: new(int32(3))},
		StartupTimeoutSeconds: 300, Attempt: 1,
	}}
}
