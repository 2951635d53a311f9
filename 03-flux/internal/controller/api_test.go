package controller

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// strictly is `kubectl apply --validate=strict`: the API server rejects unknown fields.
var strictly = &client.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}

// The smallest valid spec of either kind.
const (
	fluxBase = `{image: example.com/flux:1, command: [hostname]}`

	fluxSetupBase = `{image: example.com/flux:1, command: [hostname], mode: Submit, size: 1, minSize: 1, tasks: 1, cores: 1,
		resources: {}, template: {}, broker: {}, startupTimeoutSeconds: 300, attempt: 1, restarts: 0, suspend: false}`
)

// apiRow is a part of a spec in YAML, and the expected response of the API server.
type apiRow struct {
	spec           string
	field, message string // the invalid field, if the error names it, and a part of the message; empty: accepted
}

// object is an object of one of the API's kinds. Its spec is base, overridden by the fields of more.
func (w *testEnv) object(kind, name, base, more string) *unstructured.Unstructured {
	spec, fields := map[string]any{}, map[string]any{}
	w.Expect(yaml.Unmarshal([]byte(base), &spec)).To(Succeed(), base)
	w.Expect(yaml.Unmarshal([]byte(more), &fields)).To(Succeed(), more)
	maps.Copy(spec, fields)
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind))
	object.SetNamespace(w.namespace)
	object.SetName(name)
	return object
}

// expectError asserts that the error of a request is what the row expects.
func expectError(t *testing.T, err error, field, message string) {
	t.Helper()
	g := NewWithT(t)
	switch {
	case message == "":
		g.Expect(err).NotTo(HaveOccurred())
		return
	case field == "":
		g.Expect(err).To(MatchError(ContainSubstring(message)))
		return
	}
	var status apierrors.APIStatus
	g.Expect(errors.As(err, &status)).To(BeTrue(), "%v", err)
	g.Expect(status.Status().Details.Causes).To(ContainElement(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Field": Equal(field), "Message": ContainSubstring(message),
	})), "%v", err)
}

func (w *testEnv) checkRows(t *testing.T, kind, base string, rows map[string]apiRow) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectError(t, w.client.Create(w.ctx, w.object(kind, "x", base, row.spec), strictly), row.field, row.message)
		})
	}
}

// checkNumber checks a field, such as broker.port, inside and outside both of its limits.
func (w *testEnv) checkNumber(t *testing.T, kind, base, field string, low, high int64) {
	t.Helper()
	parent, child, nested := strings.Cut(field, ".")
	for value, message := range map[int64]string{
		low: "", low - 1: fmt.Sprintf("spec.%s in body should be greater than or equal to %d", field, low),
		high: "", high + 1: fmt.Sprintf("spec.%s in body should be less than or equal to %d", field, high),
	} {
		t.Run(fmt.Sprintf("%s %d", field, value), func(t *testing.T) {
			t.Parallel()
			spec := fmt.Sprintf("%s: %d", parent, value)
			if nested {
				spec = fmt.Sprintf("%s: {%s: %d}", parent, child, value)
			}
			expectError(t, w.client.Create(w.ctx, w.object(kind, "x", base, spec), strictly), "spec."+field, message)
		})
	}
}

// checkLength checks a field at its maximum length, and one above it. of returns a value of a length.
func (w *testEnv) checkLength(t *testing.T, kind, base, field string, most int, of func(int) string) {
	t.Helper()
	parent, child, nested := strings.Cut(field, ".")
	for n, message := range map[int]string{most: "", most + 1: fmt.Sprint(most)} {
		t.Run(fmt.Sprintf("%s of %d", field, n), func(t *testing.T) {
			t.Parallel()
			spec := fmt.Sprintf("%s: %s", parent, of(n))
			if nested {
				spec = fmt.Sprintf("%s: {%s: %s}", parent, child, of(n))
			}
			err := w.client.Create(w.ctx, w.object(kind, "x", base, spec), strictly)
			expectError(t, err, "spec."+field, message)
			if message != "" {
				NewWithT(t).Expect(err).To(MatchError(Or(ContainSubstring("Too long"), ContainSubstring("Too many"))))
			}
		})
	}
}

func letters(n int) string { return strings.Repeat("a", n) }

// items returns a list of n items; format is called with the index of each.
func items(format string) func(int) string {
	return func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
}

// entries returns a map of n strings.
func entries(n int) string {
	list := items("k%d: v")(n)
	return "{" + list[1:len(list)-1] + "}"
}

func TestFluxBounds(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	w.checkBoth(t, "Flux", strings.Replace(fluxBase, "}", ", size: 1000}", 1))
	w.checkNumber(t, "Flux", fluxBase, "size", 1, 1000)
	w.checkNumber(t, "Flux", fluxBase, "tasks", 1, 100000)
	w.checkNumber(t, "Flux", fluxBase, "maxRestarts", 0, 1000)
	w.checkNumber(t, "Flux", fluxBase, "ttlSecondsAfterFinished", 0, 1<<31-1)
}

func TestFluxSetupBounds(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	w.checkBoth(t, "FluxSetup", fluxSetupBase)
	w.checkNumber(t, "FluxSetup", fluxSetupBase, "size", 1, 1000)
	w.checkNumber(t, "FluxSetup", fluxSetupBase, "tasks", 1, 100000)
	w.checkNumber(t, "FluxSetup", fluxSetupBase, "cores", 1, 100000)
	w.checkNumber(t, "FluxSetup", fluxSetupBase, "attempt", 1, v1alpha1.MaxAttempts)
	w.checkNumber(t, "FluxSetup", fluxSetupBase, "restarts", 0, 1000)
}

// checkBoth checks the limits of the fields that both kinds have.
func (w *testEnv) checkBoth(t *testing.T, kind, base string) {
	t.Helper()
	w.checkNumber(t, kind, base, "minSize", 1, 1000)
	w.checkNumber(t, kind, base, "startupTimeoutSeconds", 1, 86400)
	w.checkNumber(t, kind, base, "activeDeadlineSeconds", 1, 1<<31-1)
	w.checkNumber(t, kind, base, "broker.port", 1024, 65535)
	w.checkNumber(t, kind, base, "broker.logLevel", 0, 7)
	w.checkLength(t, kind, base, "image", 1024, letters)
	w.checkLength(t, kind, base, "command", 256, items("a%d"))
	for field, most := range map[string]int{"serviceAccountName": 253, "priorityClassName": 253, "schedulerName": 253} {
		w.checkLength(t, kind, base, "template."+field, most, letters)
	}
	for _, field := range []string{"labels", "annotations", "nodeSelector"} {
		w.checkLength(t, kind, base, "template."+field, 64, entries)
	}
	w.checkLength(t, kind, base, "template.tolerations", 64, items("{key: k%d}"))
	w.checkLength(t, kind, base, "template.imagePullSecrets", 16, items("{name: s%d}"))
	w.checkLength(t, kind, base, "template.volumes", 64, items("{name: v%d, emptyDir: {}}"))
	w.checkLength(t, kind, base, "template.volumeMounts", 30, items("{name: v, mountPath: /m%d}"))
	w.checkLength(t, kind, base, "template.env", 256, items("{name: E%d}"))
}

// The status is bounded too, so that a bug of the operator cannot fill etcd.
func TestStatusBounds(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	flux, setup := w.object("Flux", "x", fluxBase, ""), w.object("FluxSetup", "x", fluxSetupBase, "")
	w.Expect(w.client.Create(w.ctx, flux)).To(Succeed())
	w.Expect(w.client.Create(w.ctx, setup)).To(Succeed())
	conditions := items("{type: C%d, status: 'True', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}")
	for _, row := range []struct {
		object      *unstructured.Unstructured
		field       string
		in, out     string
		outside, of string
	}{
		{flux, "readyRanks", "1000", "1001", "status.readyRanks", "less than or equal to 1000"},
		{flux, "readyRanks", "0", "-1", "status.readyRanks", "greater than or equal to 0"},
		{flux, "restarts", "1000", "1001", "status.restarts", "less than or equal to 1000"},
		{flux, "exitCode", "-1", "x", "status.exitCode", "must be of type integer"},
		{flux, "observedGeneration", "0", "-1", "status.observedGeneration", "greater than or equal to 0"},
		{flux, "setupRef", "{name: x, uid: u}", "{name: x}", "status.setupRef.uid", "Required value"},
		{flux, "conditions", conditions(16), conditions(17), "status.conditions", "must have at most 16 items"},
		{setup, "attempt", "1", "-1", "status.attempt", "greater than or equal to 0"},
		{setup, "attempt", "9999", "10000", "status.attempt", "less than or equal to 9999"},
		{setup, "readyRanks", "1000", "1001", "status.readyRanks", "less than or equal to 1000"},
		{setup, "readyRanks", "0", "-1", "status.readyRanks", "greater than or equal to 0"},
		{setup, "leaderPod", letters(253), letters(254), "status.leaderPod", "may not be more than 253"},
		{setup, "configHash", letters(64), letters(65), "status.configHash", "may not be more than 64"},
		{setup, "conditions", conditions(16), conditions(17), "status.conditions", "must have at most 16 items"},
	} {
		for value, message := range map[string]string{row.in: "", row.out: row.of} {
			body, err := yaml.YAMLToJSON([]byte(fmt.Sprintf("{status: {%s: %s}}", row.field, value)))
			w.Expect(err).NotTo(HaveOccurred())
			patch := client.RawPatch(types.MergePatchType, body)
			expectError(t, w.client.Status().Patch(w.ctx, row.object.DeepCopy(), patch, client.DryRunAll), row.outside, message)
		}
	}
}
