package controller

import (
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// A command that the API server accepts can be stored in each object that contains it. In the ConfigMap a quote takes
// four bytes; in the JSON of a Flux and a FluxSetup some characters take six.
func TestLongestCommandIsStored(t *testing.T) {
	t.Parallel()
	for name, character := range map[string]string{
		"letters": "a", "quotes": "'", "angle brackets": "<", "control characters": "\x01", "line separators": "\u2028", "cows": cow,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := fluxOf(1)
			spec.Command = append([]string{"a"}, commandOf(longestCommand-1, character)...)
			b := newSetupTestEnv(t, spec)
			setup := b.reconcile()
			b.Expect(setup.Spec.Command).To(Equal(spec.Command))
			b.Expect(jobRecorded(setup)).To(BeTrue())
			b.Expect(conditionOf(setup.Status.Conditions, v1alpha1.ConditionConfigured).Reason).To(Equal(v1alpha1.ReasonConfigured))
			b.Expect(b.configMap().Data).To(Equal(clusterOf(setup).Files()))
		})
	}
}
