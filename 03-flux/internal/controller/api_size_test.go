package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// All dependents of a Flux that is at all limits at once can be created, and its status can be stored. etcd stores at
// most 1.5 MiB of JSON, which encodes some characters as six bytes and repeats the names of variables for each field
// owner. A single quote of the command takes four bytes in the ConfigMap, which has at most 1 MiB.
func TestLargestFlux(t *testing.T) {
	t.Parallel()
	for name, character := range map[string]string{"letters": "a", "cows": cow, "control characters": "\x01", "quotes": "'"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := fluxOf(1)
			spec.Command = append([]string{"a"}, commandOf(longestCommand-1, character)...)
			spec.Template = &v1alpha1.PodTemplate{Annotations: map[string]string{"a": strings.Repeat(character, longestAnnotations-1)}}
			const variables, nameLength = 256, 32
			for i := range variables {
				spec.Template.Env = append(spec.Template.Env, corev1.EnvVar{
					Name:  fmt.Sprintf("%0*d", nameLength, i),
					Value: strings.Repeat(character, longestEnv/variables-nameLength),
				})
			}
			b := newSetupTestEnv(t, spec)
			b.running()
			b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.Suspend = true })
			b.reconcile()
			b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
		})
	}
}

// The strings of an affinity have no limits of their own. If a Flux is so large that etcd cannot store its status, an
// Event reports it, and retries are limited by time.
func TestFluxThatIsTooLarge(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	requirement := corev1.NodeSelectorRequirement{Key: "machine", Operator: corev1.NodeSelectorOpIn}
	for i := range 24_960 {
		requirement.Values = append(requirement.Values, fmt.Sprintf("%060d", i))
	}
	w.Eventually(func() error {
		requirement.Values = requirement.Values[4:]
		flux := &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec()}
		flux.Spec.Template = &v1alpha1.PodTemplate{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{requirement}},
			}},
		}}}
		return w.client.Create(w.ctx, flux)
	}, watchTimeout, time.Millisecond).Should(Succeed())
	for range 3 {
		_, err := w.tryReconcile()
		w.Expect(err).To(MatchError(ContainSubstring("delete the Flux, and create one with a smaller spec")))
	}
	w.Expect(w.setupWrites).To(Equal(1), "it is retried only when the retry is due")
	w.Expect(w.recorded()).To(HaveEach(Equal("Warning ApplyFailed " +
		"the object is so large that its status cannot be stored: delete it, and create a smaller one")))
}

// The API server has its own limit, and returns etcd's limit as an internal error.
func TestTooLargeIsRejected(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
		apierrors.NewInternalError(errors.New("etcdserver: request is too large")),
		apierrors.NewInternalError(errors.New("rpc error: code = ResourceExhausted desc = trying to send message larger than max (3000000 vs. 2097152)")),
	} {
		g := NewWithT(t)
		failure := failureOf(classify("applying FluxSetup job", err))
		g.Expect(failure.reason).To(Equal(v1alpha1.ReasonApplyFailed))
		g.Expect(failure.message).To(And(HavePrefix("applying FluxSetup job: "), HaveSuffix("delete the Flux, and create one with a smaller spec")))
	}
}
