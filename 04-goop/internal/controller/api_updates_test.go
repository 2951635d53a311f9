package controller

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// fieldRow is a field of a spec, and two values for it.
type fieldRow struct {
	name, value, other string
	may                bool // whether it may be changed
}

var goopFields = []fieldRow{
	{"cmd", "[a, b]", "[a, c]", false},
	{"jobCount", "2", "3", false},
	{"cleanupCmd", "[a, b]", "[b]", false},
	{"cleanupTimeoutSeconds", "10", "20", false},
	{"image", "a", "b", false},
	{"nodeSelector", "{a: b}", "{a: c}", false},
	{"tolerations", "[{key: a, operator: Exists}]", "[{key: b, operator: Exists}]", false},
	{"retries", "1", "2", false},
	{"failurePolicy", "FailFast", "Continue", false},
	{"resources", "{limits: {cpu: '1'}}", "{limits: {cpu: '1'}, requests: {cpu: '1'}}", false},
	{"env", "[{name: A, value: b}]", "[{name: A, value: c}]", false},
	{"host", "{root: ReadOnly}", "{root: ReadWrite}", false},
	{"activeDeadlineSeconds", "10", "20", true},
	{"suspend", "true", "false", true},
	{"ttlSecondsAfterFinished", "10", "0", true},
}

// TestGoopIsImmutable changes, adds and removes each field of a Goop.
func TestGoopIsImmutable(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	expectAllFields(t, v1alpha1.GoopSpec{}, goopFields)
	all, least := w.object("all", "{}", withAll(goopFields)), w.object("least", goopBase, "")
	w.Expect(w.client.Create(w.ctx, all)).To(Succeed())
	w.Expect(w.client.Create(w.ctx, least)).To(Succeed())
	w.Expect(w.patch(all, "{}")).To(Succeed(), "the same spec")
	const message = "is immutable: delete the Goop and create another"
	for _, field := range goopFields {
		t.Run(field.name, func(t *testing.T) {
			t.Parallel()
			for what, change := range map[string]struct {
				of    client.Object
				value string
			}{"changed": {all, field.other}, "removed": {all, "null"}, "added": {least, field.value}} {
				want, at := message, "spec."+field.name
				switch {
				case field.may:
					want = ""
				case field.name == "cmd" && what == "removed":
					want = "Required value"
				}
				t.Run(what, func(t *testing.T) {
					expectError(t, w.patch(change.of, fmt.Sprintf("{%s: %s}", field.name, change.value)), at, want)
				})
			}
		})
	}
}

// withAll returns a spec with all fields.
func withAll(rows []fieldRow) string {
	var all []string
	for _, row := range rows {
		all = append(all, row.name+": "+row.value)
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// patch sends a dry-run patch of the spec of an existing object.
func (w *testEnv) patch(object client.Object, spec string) error {
	body, err := yaml.YAMLToJSON([]byte("{spec: " + spec + "}"))
	w.Expect(err).NotTo(HaveOccurred(), spec)
	target := object.DeepCopyObject().(client.Object)
	return w.client.Patch(w.ctx, target, client.RawPatch(types.MergePatchType, body), client.DryRunAll)
}

// expectAllFields fails if a field of the type has no row, or if a row has no field.
func expectAllFields(t *testing.T, spec any, rows []fieldRow) {
	t.Helper()
	var want []string
	for _, field := range reflect.VisibleFields(reflect.TypeOf(spec)) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		want = append(want, name)
	}
	var got []string
	for _, row := range rows {
		got = append(got, row.name)
	}
	NewWithT(t).Expect(got).To(ConsistOf(want))
}
