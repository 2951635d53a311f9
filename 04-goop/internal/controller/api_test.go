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

	"example.com/workbook/04-goop/api/v1alpha1"
)

// strictly is `kubectl apply --validate=strict`: the API server rejects unknown fields.
var strictly = &client.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}

// goopBase is a spec with only the required fields.
const goopBase = `{cmd: [hostname]}`

// apiRow is a part of a spec in YAML, and the expected response of the API server.
type apiRow struct {
	spec           string
	field, message string // the invalid field, if the response has it separately, and a part of the message; empty: accepted
}

// object returns a Goop whose spec is base, with the fields of more in place of its own.
func (w *testEnv) object(name, base, more string) *unstructured.Unstructured {
	spec, fields := map[string]any{}, map[string]any{}
	w.Expect(yaml.Unmarshal([]byte(base), &spec)).To(Succeed(), base)
	w.Expect(yaml.Unmarshal([]byte(more), &fields)).To(Succeed(), more)
	maps.Copy(spec, fields)
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("Goop"))
	object.SetNamespace(w.namespace)
	object.SetName(name)
	return object
}

// expectError compares the error of a request with a row.
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

func (w *testEnv) checkRows(t *testing.T, rows map[string]apiRow) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectError(t, w.client.Create(w.ctx, w.object("x", goopBase, row.spec), strictly), row.field, row.message)
		})
	}
}

// checkNumber checks both bounds of a number field: the last value that is accepted and the first that is rejected.
func (w *testEnv) checkNumber(t *testing.T, field string, low, high int64) {
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
			expectError(t, w.client.Create(w.ctx, w.object("x", goopBase, spec), strictly), "spec."+field, message)
		})
	}
}

// checkLength checks a field of the maximum length, and one longer. of returns its value.
func (w *testEnv) checkLength(t *testing.T, field string, most int, of func(int) string) {
	t.Helper()
	parent, child, nested := strings.Cut(field, ".")
	for n, message := range map[int]string{most: "", most + 1: fmt.Sprint(most)} {
		t.Run(fmt.Sprintf("%s of %d", field, n), func(t *testing.T) {
			t.Parallel()
			spec := fmt.Sprintf("%s: %s", parent, of(n))
			if nested {
				spec = fmt.Sprintf("%s: {%s: %s}", parent, child, of(n))
			}
			err := w.client.Create(w.ctx, w.object("x", goopBase, spec), strictly)
			expectError(t, err, "spec."+field, message)
			if message != "" {
				NewWithT(t).Expect(err).To(MatchError(Or(ContainSubstring("Too long"), ContainSubstring("Too many"))))
			}
		})
	}
}

func letters(n int) string { return strings.Repeat("a", n) }

// items returns a list of n items; format gets the index of each.
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

func TestGoopBounds(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	w.checkNumber(t, "jobCount", 1, 160000)
	w.checkNumber(t, "cleanupTimeoutSeconds", 1, 86400)
	w.checkNumber(t, "retries", 0, 1000)
	w.checkNumber(t, "activeDeadlineSeconds", 1, 1<<31-1)
	w.checkNumber(t, "ttlSecondsAfterFinished", 0, 1<<31-1)
	w.checkLength(t, "cmd", 64, items("a%d"))
	w.checkLength(t, "cleanupCmd", 64, items("a%d"))
	w.checkLength(t, "image", 1024, letters)
	w.checkLength(t, "nodeSelector", 64, entries)
	w.checkLength(t, "tolerations", 64, items("{key: k%d, operator: Exists}"))
	w.checkLength(t, "env", 256, items("{name: E%d}"))
}

// The status has limits too, so that a bug of the operator cannot fill etcd.
func TestStatusBounds(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	goop := w.object("x", goopBase, "")
	w.Expect(w.client.Create(w.ctx, goop)).To(Succeed())
	conditions := items("{type: C%d, status: 'True', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}")
	failures := items("{node: n%d, round: 31, exitCode: 1}")
	for _, row := range []struct{ field, in, out, of string }{
		{"desired", "0", "-1", "greater than or equal to 0"},
		{"running", "1000000", "-1", "greater than or equal to 0"},
		{"desired", "1", "1000001", "less than or equal to 1000000"},
		{"succeeded", "0", "-1", "greater than or equal to 0"},
		{"failed", "0", "-1", "greater than or equal to 0"},
		{"observedGeneration", "0", "-1", "greater than or equal to 0"},
		{"exitCode", "255", "x", "must be of type integer"},
		{"failures", failures(20), failures(21), "must have at most 20 items"},
		{"conditions", conditions(16), conditions(17), "must have at most 16 items"},
	} {
		for value, message := range map[string]string{row.in: "", row.out: row.of} {
			body, err := yaml.YAMLToJSON([]byte(fmt.Sprintf("{status: {%s: %s}}", row.field, value)))
			w.Expect(err).NotTo(HaveOccurred())
			patch := client.RawPatch(types.MergePatchType, body)
			expectError(t, w.client.Status().Patch(w.ctx, goop.DeepCopy(), patch, client.DryRunAll), "status."+row.field, message)
		}
	}
}
