package controller

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/internal/broker"
)

var update = flag.Bool("update", false, "rewrite the golden files of this package")

// fullFlux is a Flux with all optional fields.
func fullFlux() *v1alpha1.Flux {
	return &v1alpha1.Flux{
		ObjectMeta: metav1.ObjectMeta{Name: "bees", Namespace: "hive", UID: "1"},
		Spec: v1alpha1.FluxSpec{
			Image:   "example.com/flux:1",
			Command: []string{"echo", "$HOME", "$(HOSTNAME)", "$$", "", "a b\n\"c\" 'd'", "--", "\U0001F41D"},
			Size:    4, MinSize: new(int32(2)), Tasks: new(int32(8)),
			ActiveDeadlineSeconds: new(int64(600)),
			Resources: &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
			},
			Template: &v1alpha1.PodTemplate{
				Labels:             map[string]string{"team": "bees", labelName: "theirs", labelManagedBy: "theirs"},
				Annotations:        map[string]string{"note": "buzz"},
				NodeSelector:       map[string]string{"disk": "ssd"},
				Tolerations:        []corev1.Toleration{{Key: "busy", Operator: corev1.TolerationOpExists}},
				Affinity:           &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
				ImagePullSecrets:   []corev1.LocalObjectReference{{Name: "registry"}},
				Volumes:            []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				VolumeMounts:       []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				Env:                []corev1.EnvVar{{Name: "COLOUR", Value: "yellow"}},
				SecurityContext:    &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1000))},
				ServiceAccountName: "bee", PriorityClassName: "high", SchedulerName: "other",
			},
		},
	}
}

// launchedSetup is the FluxSetup of a Flux after the launch.
func launchedSetup(flux *v1alpha1.Flux) *v1alpha1.FluxSetup {
	setup := firstSetup(flux)
	setup.UID = "2"
	setup.Spec.Launch = &v1alpha1.Launch{Attempt: setup.Spec.Attempt}
	return setup
}

func TestDesiredJobMatchesTheGoldenFile(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	text, err := yaml.Marshal(desiredJob(launchedSetup(fullFlux())))
	g.Expect(err).NotTo(HaveOccurred())
	golden := filepath.Join("testdata", "job.yaml")
	if *update {
		g.Expect(os.MkdirAll(filepath.Dir(golden), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(golden, text, 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(golden)
	g.Expect(err).NotTo(HaveOccurred(), "go test -update creates it")
	g.Expect(text).To(MatchYAML(want))
}

// The golden file shows a change of a field, but not why the broker needs the field. Without these fields a job ends
// with a wrong result, or never.
func TestDesiredJobKeepsTheContract(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	setup := launchedSetup(fullFlux())
	job := desiredJob(setup)
	g.Expect(job.Spec.BackoffLimit).To(HaveValue(BeZero()), "a replaced leader starts alone and waits forever")
	g.Expect(job.Spec.SuccessPolicy.Rules).To(HaveLen(1))
	g.Expect(job.Spec.SuccessPolicy.Rules[0].SucceededIndexes).To(HaveValue(Equal("0")))
	g.Expect(job.Spec.SuccessPolicy.Rules[0].SucceededCount).To(BeNil())
	g.Expect(job.Spec.Completions).To(Equal(job.Spec.Parallelism), "all ranks at once")
	g.Expect(job.Spec.CompletionMode).To(HaveValue(Equal(batchv1.IndexedCompletion)))
	g.Expect(job.Spec.Suspend).To(HaveValue(BeTrue()), "nothing runs before it is recorded")
	g.Expect(started(job)).To(BeFalse())

	pod := job.Spec.Template
	g.Expect(pod.Labels).To(HaveKeyWithValue(labelManagedBy, managedBy), "the cache selects it by this label")
	g.Expect(pod.Labels).To(HaveKeyWithValue(labelAttempt, "1"))
	g.Expect(pod.Labels).To(HaveKeyWithValue("team", "bees"))
	g.Expect(pod.Spec.SecurityContext.FSGroup).To(BeNil(), "the broker rejects a certificate that a group can read")
	g.Expect(pod.Spec.SetHostnameAsFQDN).To(BeNil(), "the hostname must be the one in broker.toml")
	g.Expect(pod.Spec.Containers[0].Args).To(BeEmpty(), "Kubernetes expands $(X) in arguments, and Flux {{id}}")
}

func TestDesiredFiles(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	setup := launchedSetup(fullFlux())
	cluster := broker.Cluster{
		Name: "bees-1", Service: "bees", Namespace: "hive", Size: 4, MinSize: 2, Tasks: 8, Cores: 4, Port: 8050, LogLevel: 3, ConnectTimeout: "5s", Argv: setup.Spec.Command,
	}
	g.Expect(clusterOf(setup)).To(Equal(cluster))
	job := desiredJob(setup)
	job.UID = "3"
	configMap := desiredConfigMap(setup, job)
	g.Expect(configMap.Name).To(Equal("bees-1"))
	g.Expect(metav1.IsControlledBy(configMap, job)).To(BeTrue(), "it is deleted with the Job")
	g.Expect(job.Annotations).To(HaveKeyWithValue(annotationConfigHash, cluster.Hash()))
	g.Expect(configMap.Data).To(Equal(map[string]string{
		"broker.toml": cluster.Config(), "entrypoint.sh": cluster.Entrypoint(), "command.sh": cluster.Command(),
	}))
	g.Expect(configMap.Immutable).To(HaveValue(BeTrue()))
	setup.Spec.Mode = v1alpha1.ModeLauncher
	g.Expect(clusterOf(setup).Launcher).To(BeTrue())

	secret := desiredSecret(setup, job, []byte("certificate"))
	g.Expect(secret.Name).To(Equal("bees-1"))
	g.Expect(metav1.IsControlledBy(secret, job)).To(BeTrue(), "it is deleted with the Job")
	g.Expect(secret.Data).To(Equal(map[string][]byte{"curve.cert": []byte("certificate")}))

	service := desiredService(setup)
	g.Expect(service.Spec.ClusterIP).To(HaveValue(Equal(corev1.ClusterIPNone)))
	g.Expect(service.Spec.PublishNotReadyAddresses).To(HaveValue(BeTrue()), "a rank becomes ready only after the others have found it")
	g.Expect(service.Spec.Selector).To(Equal(attemptLabels(setup)))
	for key, value := range service.Spec.Selector {
		g.Expect(job.Spec.Template.Labels).To(HaveKeyWithValue(key, value))
	}
	g.Expect(service.OwnerReferences[0].UID).To(HaveValue(Equal(setup.UID)))
}
