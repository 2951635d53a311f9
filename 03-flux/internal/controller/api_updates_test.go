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

	"example.com/workbook/03-flux/api/v1alpha1"
)

// fieldRow is a field of a spec, and two values for it.
type fieldRow struct {
	name, value, other string
	may                bool // be changed
}

var fluxFields = []fieldRow{
	{"image", "a", "b", false},
	{"command", "[a, b]", "[a, c]", false},
	{"size", "2", "3", false},
	{"tasks", "4", "5", false},
	{"minSize", "1", "2", false},
	{"mode", "Launcher", "Submit", false},
	{"resources", "{limits: {cpu: '1'}}", "{limits: {cpu: '1'}, requests: {cpu: '1'}}", false},
	{"template", "{labels: {a: b}, env: [{name: A, value: b}]}", "{labels: {a: c}, env: [{name: A, value: b}]}", false},
	{"maxRestarts", "1", "2", false},
	{"broker", "{port: 8051}", "{port: 8051, logLevel: 7}", false},
	{"suspend", "true", "false", true},
	{"startupTimeoutSeconds", "10", "20", true},
	{"activeDeadlineSeconds", "10", "20", true},
	{"ttlSecondsAfterFinished", "10", "0", true},
}

// TestFluxIsImmutable changes, adds and removes each field of a Flux.
func TestFluxIsImmutable(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	expectAllFields(t, v1alpha1.FluxSpec{}, fluxFields)
	all, least := w.object("Flux", "all", "{}", withAll(fluxFields)), w.object("Flux", "least", fluxBase, "")
	w.Expect(w.client.Create(w.ctx, all)).To(Succeed())
	w.Expect(w.client.Create(w.ctx, least)).To(Succeed())
	w.Expect(w.patch(all, "{}")).To(Succeed(), "an update without a change")
	const message = "is immutable: delete the Flux and create another"
	for _, field := range fluxFields {
		t.Run(field.name, func(t *testing.T) {
			t.Parallel()
			required := field.name == "image" || field.name == "command"
			for what, change := range map[string]struct {
				of    client.Object
				value string
			}{"changed": {all, field.other}, "removed": {all, "null"}, "added": {least, field.value}} {
				want, at := message, "spec."+field.name
				switch {
				case field.may:
					want = ""
				case required && what == "removed":
					want = "Required value"
				}
				t.Run(what, func(t *testing.T) {
					expectError(t, w.patch(change.of, fmt.Sprintf("{%s: %s}", field.name, change.value)), at, want)
				})
			}
		})
	}
}

// Nested fields are immutable too.
func TestFluxIsImmutableInside(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	flux := w.object("Flux", "x", fluxBase, `{resources: {limits: {cpu: '1', memory: 1Gi}}, broker: {port: 8051, connectTimeout: 6s},
		template: {labels: {a: b}, nodeSelector: {c: d}, env: [{name: A, value: b}], serviceAccountName: e}}`)
	w.Expect(w.client.Create(w.ctx, flux)).To(Succeed())
	for spec, field := range map[string]string{
		"{command: [hostname, -f]}":                        "command",
		"{command: [host, name]}":                          "command",
		"{resources: {limits: {cpu: '2'}}}":                "resources",
		"{resources: {limits: {memory: null}}}":            "resources",
		"{resources: {requests: {cpu: '1'}}}":              "resources",
		"{broker: {port: null}}":                           "broker",
		"{broker: {connectTimeout: 5s}}":                   "broker",
		"{broker: {logLevel: 4}}":                          "broker",
		"{template: {labels: {a: c}}}":                     "template",
		"{template: {labels: {x: z}}}":                     "template",
		"{template: {nodeSelector: null}}":                 "template",
		"{template: {annotations: {x: z}}}":                "template",
		"{template: {env: []}}":                            "template",
		"{template: {env: [{name: A, value: c}]}}":         "template",
		"{template: {serviceAccountName: f}}":              "template",
		"{template: {securityContext: {runAsUser: 1}}}":    "template",
		"{template: {volumes: [{name: v, emptyDir: {}}]}}": "template",
	} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			expectError(t, w.patch(flux, spec), "spec."+field, "is immutable: delete the Flux and create another")
		})
	}
}

// withAll is a spec with all fields.
func withAll(rows []fieldRow) string {
	var all []string
	for _, row := range rows {
		all = append(all, row.name+": "+row.value)
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// patch merges fields into the spec of an existing object as a dry run.
func (w *testEnv) patch(object client.Object, spec string) error {
	body, err := yaml.YAMLToJSON([]byte("{spec: " + spec + "}"))
	w.Expect(err).NotTo(HaveOccurred(), spec)
	target := object.DeepCopyObject().(client.Object)
	return w.client.Patch(w.ctx, target, client.RawPatch(types.MergePatchType, body), client.DryRunAll)
}

// expectAllFields fails if the rows lack a field of the type, or name one that the type does not have.
func expectAllFields(t *testing.T, spec any, rows []fieldRow, but ...string) {
	t.Helper()
	var want []string
	for _, field := range reflect.VisibleFields(reflect.TypeOf(spec)) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		want = append(want, name)
	}
	got := but
	for _, row := range rows {
		got = append(got, row.name)
	}
	NewWithT(t).Expect(got).To(ConsistOf(want))
}
