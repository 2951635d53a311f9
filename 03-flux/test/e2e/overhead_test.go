package e2e

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/internal/broker"
	"example.com/workbook/shared/e2e"
)

const (
	// rounds is how often each of the two is timed.
	rounds = 5
	// overhead is the maximum ratio of the time of a Flux to the time of the same objects without an operator.
	overhead = 1.3
)

var _ = Describe("The operator's overhead", Serial, Label(e2e.LabelContainers), func() {
	It("is little: a Flux of four ranks takes less than 1.3 times as long as the same Job without the operator", func(ctx SpecContext) {
		w := newTestEnv(ctx)
		var plain, operated []time.Duration
		var ratios []float64
		for round := range rounds {
			timers := []func(){
				func() { plain = append(plain, w.timePlainJob(fmt.Sprintf("plain-%d", round))) },
				func() { operated = append(operated, w.timeFlux(fmt.Sprintf("flux-%d", round))) },
			}
			// The load of the machine changes: each Flux is compared with a Job at about the same time, and neither is
			// always the first.
			timers[round%2]()
			timers[1-round%2]()
			ratios = append(ratios, operated[round].Seconds()/plain[round].Seconds())
		}
		fmt.Printf("==> from creation to Complete, hostname on 4 ranks, medians of %d: Job by hand %.2f s, Flux %.2f s, ratio of neighbours %.2f\n",
			rounds, median(plain).Seconds(), median(operated).Seconds(), median(ratios))
		Expect(median(ratios)).To(BeNumerically("<", overhead), "without the operator %s, with it %s", plain, operated)
	})
})

func median[T cmp.Ordered](values []T) T {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

func (w *testEnv) timeFlux(name string) time.Duration {
	GinkgoHelper()
	began := time.Now()
	flux := w.create(name, v1alpha1.FluxSpec{Command: []string{"hostname"}, Size: 4})
	w.complete(flux)
	took := time.Since(began)
	w.delete(flux)
	w.noPods(flux, patience)
	return took
}

// timePlainJob times what a user without an operator would create: the same files, and a Job that is Complete when rank
// 0 has succeeded.
func (w *testEnv) timePlainJob(name string) time.Duration {
	GinkgoHelper()
	job, others := w.plainJob(name)
	began := time.Now()
	for _, object := range append(others, job) {
		Expect(env.Client.Create(w.ctx, object)).To(Succeed())
	}
	until(w, job, func(g Gomega, j *batchv1.Job) {
		g.Expect(j.Status.Conditions).To(ContainElement(And(HaveField("Type", batchv1.JobComplete), HaveField("Status", corev1.ConditionTrue))))
	})
	took := time.Since(began)
	w.delete(append(others, job)...)
	w.noPods(&v1alpha1.Flux{ObjectMeta: job.ObjectMeta}, patience)
	return took
}

// plainJob is the Job, with the ConfigMap, the Secret and the Service that it needs.
func (w *testEnv) plainJob(name string) (job *batchv1.Job, others []client.Object) {
	GinkgoHelper()
	instance := broker.Cluster{
		Name: name, Service: name, Namespace: w.namespace, Size: 4, MinSize: 4, Tasks: 4, Cores: 1, Port: 8050, LogLevel: 3, ConnectTimeout: "5s",
		Argv: []string{"hostname"},
	}
	certificate, err := broker.NewCertificate(rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: name}
	configMap := &corev1.ConfigMap{ObjectMeta: meta, Data: instance.Files()}
	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{broker.CertificateFile: certificate}}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: map[string]string{batchv1.JobNameLabel: name},
	}}
	job = &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		CompletionMode: new(batchv1.IndexedCompletion), Completions: &instance.Size, Parallelism: &instance.Size, BackoffLimit: new(int32(0)),
		SuccessPolicy: &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("0")}}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{instanceLabel: name}}, Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Subdomain: name, TerminationGracePeriodSeconds: new(int64(10)),
			AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
			Volumes: []corev1.Volume{
				{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}},
				{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}},
			},
			Containers: []corev1.Container{{
				Name: "flux", Image: env.Prepared,
				Command: []string{"/bin/sh", broker.ConfigDir + "/" + broker.EntrypointFile},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "work", MountPath: broker.Dir}, {Name: "config", MountPath: broker.ConfigDir}, {Name: "secret", MountPath: broker.SecretDir},
				},
			}},
		}},
	}}
	return job, []client.Object{configMap, secret, service}
}
