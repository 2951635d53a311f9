package e2e

import (
	"crypto/rand"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/internal/broker"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

const (
	// unlimited is a time to start, in seconds, that does not expire in a spec, on any machine.
	unlimited = 3600
	// unpullable is an image that no node can pull, and pullError is the kubelet's message.
	unpullable = "no-such-registry.invalid/flux-core:1"
	pullError  = `failed to pull and unpack image "` + unpullable + `": failed to resolve reference: dial tcp: lookup no-such-registry.invalid: no such host`
)

var _ = Describe("A Flux", func() {
	commandFails("exits with 3", sh("echo three >&2; exit 3"), 3, "three")
	commandFails("is killed by SEGV", sh("echo going down >&2; kill -SEGV $$"), 139, "going down")
	commandFails("is not found", []string{"no-such-program", "argument"}, 127, "no-such-program")

	onContainers("has the exit code of the one task that failed", func(w *testEnv) {
		flux := w.create("one", v1alpha1.FluxSpec{
			Command: sh(`test "$FLUX_TASK_RANK" != 2 || { echo "task two fails" >&2; exit 7; }`), Size: 3,
		})
		Expect(w.failed(flux, v1alpha1.ReasonCommandFailed)).To(ContainSubstring("task two fails"))
		Expect(flux.Status.ExitCode).To(HaveValue(Equal(int32(7))))
	})
	onContainers("with an image that has no flux is Failed, with that message", func(w *testEnv) {
		// The operator's own image has no shell either.
		bare := w.create("bare", v1alpha1.FluxSpec{Image: env.Images["controller"], Command: sh("exit 0")})
		hidden := w.create("hidden", v1alpha1.FluxSpec{
			Command: sh("exit 0"), Template: &v1alpha1.PodTemplate{Env: []corev1.EnvVar{{Name: "PATH", Value: "/nowhere"}}},
		})
		Expect(w.failed(bare, "")).To(ContainSubstring("/bin/sh"))
		Expect(bare.Status.ExitCode).NotTo(HaveValue(BeZero()))
		Expect(w.failed(hidden, v1alpha1.ReasonCommandFailed)).To(ContainSubstring("flux"))
		Expect(hidden.Status.ExitCode).To(HaveValue(Equal(int32(127))))
	})

	doesNotStart("an image that cannot be pulled", v1alpha1.FluxSpec{Image: unpullable, Command: sh("exit 0"), Size: 2},
		v1alpha1.ReasonImageNotPulled, And(ContainSubstring(unpullable), ContainSubstring("no such host"), ContainSubstring("rank 0")),
		func(w *testEnv, flux *v1alpha1.Flux) {
			for _, pod := range w.all(flux) {
				w.simulate(pod, waiting("ErrImagePull", pullError))
			}
		})
	doesNotStart("a node selector that matches no node", v1alpha1.FluxSpec{
		Command: sh("exit 0"), Size: 2, Template: &v1alpha1.PodTemplate{NodeSelector: map[string]string{"no-such": "node"}},
	}, v1alpha1.ReasonUnschedulable, And(ContainSubstring("nodes are available"), ContainSubstring("rank 0")), nothing)
	doesNotStart("a request that no node has room for", v1alpha1.FluxSpec{
		Command: sh("exit 0"), Resources: &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Ei")},
		},
	}, v1alpha1.ReasonUnschedulable, And(ContainSubstring("Insufficient memory"), ContainSubstring("rank 0")), nothing)
	doesNotStart("an account that does not exist", v1alpha1.FluxSpec{
		Command: sh("exit 0"), Size: 2, Template: &v1alpha1.PodTemplate{ServiceAccountName: "no-such-account"},
	}, v1alpha1.ReasonPodsNotCreated, ContainSubstring("rank 0"), nothing)
	doesNotStart("a rank that does not start (the brokers alone wait forever)", v1alpha1.FluxSpec{
		Command: sh("exit 0"), Size: 3, Template: &v1alpha1.PodTemplate{SchedulerName: byHand},
	}, v1alpha1.ReasonPodNotStarted, ContainSubstring("rank 2"), func(w *testEnv, flux *v1alpha1.Flux) {
		ranks := w.all(flux)
		w.bind(ranks[0], 0)
		w.bind(ranks[1], 1)
		w.simulate(ranks[0], started)
		w.simulate(ranks[1], ready)
		for _, pod := range ranks[:2] {
			until(w, pod, func(g Gomega, p *corev1.Pod) { g.Expect(p.Status.Phase).To(Equal(corev1.PodRunning)) })
		}
	})

	spec("in a namespace that rejects its pods is PodsNotCreated, with the command that shows the reason, and Failed in time", func(w *testEnv) {
		flux := w.create("unrestricted", v1alpha1.FluxSpec{Command: sh("exit 0"), Size: 2})
		message := w.has(flux, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonPodsNotCreated).Message
		Expect(message).To(ContainSubstring("kubectl events --for job/unrestricted-1"))
		Expect(w.kubectl("events", "--for", "job/unrestricted-1")).To(ContainSubstring(`violates PodSecurity "restricted`))
		w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.StartupTimeoutSeconds = 1 })
		Expect(w.failed(flux, v1alpha1.ReasonPodsNotCreated)).To(HaveSuffix(message))
		w.gone(jobOf(flux))
	}, e2e.Restricted)
	spec("with another certificate on one rank (the brokers alone wait forever) fails in time, and succeeds after a restart", func(w *testEnv) {
		pods := w.record()
		flux := w.create("certificate", v1alpha1.FluxSpec{
			Command: sh("exit 0"), Size: 2, StartupTimeoutSeconds: unlimited, MaxRestarts: 1,
			Template: &v1alpha1.PodTemplate{SchedulerName: byHand},
		})
		ranks := w.all(flux)
		w.bind(ranks[0], 0)
		w.simulate(ranks[0], started)
		until(w, ranks[0], func(g Gomega, pod *corev1.Pod) { g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning)) })
		w.replaceCertificate(flux)
		w.bind(ranks[1], 1)
		w.simulate(ranks[1], ready)
		until(w, ranks[1], func(g Gomega, pod *corev1.Pod) { g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning)) })
		w.expiresIn(flux, 10) // its broker has connected by then, if it can

		restarting := w.has(flux, v1alpha1.ConditionRestarting, metav1.ConditionTrue, "")
		Expect(restarting.Message).To(ContainSubstring(v1alpha1.ReasonQuorumNotReached))
		w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.StartupTimeoutSeconds = unlimited })
		w.attempt(flux, 2)
		for i, pod := range w.all(flux) {
			w.bind(pod, i)
		}
		w.complete(flux)
		Expect(flux.Status.Restarts).To(Equal(int32(1)))
		w.expectOnce(pods, flux, 2)
	})
	spec("that exceeds its deadline is Failed, and not restarted", func(w *testEnv) {
		flux := w.create("late", v1alpha1.FluxSpec{
			Command: sh("sleep 600"), ActiveDeadlineSeconds: new(int64(600)), MaxRestarts: 3,
		})
		w.running(flux)
		w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.ActiveDeadlineSeconds = new(int64(1)) })
		w.failed(flux, v1alpha1.ReasonDeadlineExceeded)
		Expect(flux.Status.Restarts).To(BeZero())
		w.noPods(flux, patience)
	})
	spec("is restarted up to maxRestarts times, each time in new pods", func(w *testEnv) {
		pods := w.record()
		flux := w.create("again", v1alpha1.FluxSpec{Command: sh("echo no luck >&2; exit 3"), Size: 2, MaxRestarts: 2})
		for attempt := range int32(3) {
			w.attempt(flux, attempt+1)
			w.begin(flux)
			w.endLeader(flux, 3, "no luck")
		}
		Expect(w.failed(flux, v1alpha1.ReasonCommandFailed)).To(ContainSubstring("no luck"))
		Expect(flux.Status.ExitCode).To(HaveValue(Equal(int32(3))))
		Expect(flux.Status.Restarts).To(Equal(int32(2)))
		w.expectOnce(pods, flux, 3)
		Eventually(func() []string { return w.events(flux) }).WithTimeout(expect.Soon).Should(
			ContainElements("Warning Restarting", "Warning CommandFailed"))
	})
	spec("is Complete when a second attempt succeeds", func(w *testEnv) {
		flux := w.create("second", v1alpha1.FluxSpec{
			Command: sh(`test "$ATTEMPT" = 2 || exit 3`), Size: 2, MaxRestarts: 5, Template: withAttempt(),
		})
		w.begin(flux)
		w.endLeader(flux, 3, "")
		w.attempt(flux, 2)
		w.complete(flux)
		Expect(flux.Status.Restarts).To(Equal(int32(1)))
		w.has(flux, v1alpha1.ConditionRestarting, metav1.ConditionFalse, "")
	})
})

// commandFails is a spec about a command that ends with an exit code, and the output that it writes before.
func commandFails(what string, command []string, code int32, output string) {
	spec("with a command that "+what+" has its exit code, and the end of its output", func(w *testEnv) {
		flux := w.create("failing", v1alpha1.FluxSpec{Command: command})
		w.begin(flux)
		w.endLeader(flux, code, output)
		Expect(w.failed(flux, v1alpha1.ReasonCommandFailed)).To(ContainSubstring(output))
		Expect(flux.Status.ExitCode).To(HaveValue(Equal(code)))
		Expect(w.leader(flux).Status.Phase).To(Equal(corev1.PodFailed), "it is kept, with its log")
		Eventually(func() []string { return w.events(flux) }).WithTimeout(expect.Soon).Should(ContainElement("Warning CommandFailed"))
	})
}

// doesNotStart is a spec about a Flux whose brokers cannot all start. Its time to start expires when the reason is known:
// cause, which simulates the kubelet, returns only then, unless the reason is reported before the time has expired.
func doesNotStart(what string, of v1alpha1.FluxSpec, reason string, message types.GomegaMatcher, cause func(*testEnv, *v1alpha1.Flux)) {
	spec("with "+what+" is Failed when the time to start has expired, with the reason", func(w *testEnv) {
		of.StartupTimeoutSeconds = unlimited
		flux := w.create("stuck", of)
		cause(w, flux)
		if reason == v1alpha1.ReasonImageNotPulled || reason == v1alpha1.ReasonUnschedulable {
			until(w, flux, func(g Gomega, f *v1alpha1.Flux) {
				g.Expect(condition(g, f.Status.Conditions, v1alpha1.ConditionRunning, metav1.ConditionFalse, reason).Message).To(message)
			})
		}
		limit := w.expiresIn(flux, 4)
		Expect(w.failed(flux, reason)).To(message)
		took := flux.Status.CompletionTime.Sub(flux.Status.StartTime.Time).Seconds()
		Expect(took).To(BeNumerically(">=", limit)) // on a busy machine the operator may get to it later
		Expect(flux.Status.Restarts).To(BeZero())
		w.noPods(flux, patience)
	})
}

// expiresIn has the time to start of a Flux expire in so many seconds, and returns how many it then has been.
func (w *testEnv) expiresIn(flux *v1alpha1.Flux, seconds int32) (limit int32) {
	GinkgoHelper()
	until(w, flux, func(g Gomega, f *v1alpha1.Flux) { g.Expect(f.Status.StartTime).NotTo(BeNil()) })
	limit = int32(time.Since(flux.Status.StartTime.Time).Seconds()) + seconds
	w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.StartupTimeoutSeconds = limit })
	return limit
}

func nothing(*testEnv, *v1alpha1.Flux) {}

// withAttempt sets the variable ATTEMPT of the command to the number of its attempt.
func withAttempt() *v1alpha1.PodTemplate {
	source := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + attemptLabel + "']"}}
	return &v1alpha1.PodTemplate{Env: []corev1.EnvVar{{Name: "ATTEMPT", ValueFrom: source}}}
}

// replaceCertificate replaces the Secret of a Flux with another one that has a different valid certificate, and the
// same owner.
func (w *testEnv) replaceCertificate(flux *v1alpha1.Flux) {
	GinkgoHelper()
	old := secretOf(flux)
	w.there(old)
	certificate, err := broker.NewCertificate(rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	replacement := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: old.Namespace, Name: old.Name, Labels: old.Labels, OwnerReferences: old.OwnerReferences,
		},
		Immutable: old.Immutable,
		Type:      old.Type,
		Data:      map[string][]byte{broker.CertificateFile: certificate},
	}
	Expect(old.Data).To(HaveKey(broker.CertificateFile))
	w.delete(old)
	Expect(env.Client.Create(w.ctx, replacement)).To(Succeed())
}
