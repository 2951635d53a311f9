package controller

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// The limits for one argument, in characters, and for all arguments together, in bytes.
const (
	longestArgument = 16384
	longestCommand  = 196608
)

// The limits for all variables, and for all annotations, in characters of names and values together.
const (
	longestEnv         = 32768
	longestAnnotations = 16384
)

// TestFluxRules has valid and invalid values next to each other for every rule of the API that is more than a bound.
func TestFluxRules(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	w.checkRows(t, "Flux", fluxBase, map[string]apiRow{
		"the least":          {"{}", "", ""},
		"misspelled":         {"{comand: [x]}", "", `unknown field "spec.comand"`},
		"Submit":             {"{mode: Submit}", "", ""},
		"Launcher":           {"{mode: Launcher}", "", ""},
		"other mode":         {"{mode: launcher}", "spec.mode", `supported values: "Submit", "Launcher"`},
		"empty image":        {`{image: ""}`, "spec.image", "spec.image in body should be at least 1 chars long"},
		"no image":           {"{image: null}", "spec.image", "Required value"},
		"image with a space": {"{image: a b}", "spec.image", "must not contain white space"},
		"image with all":     {"{image: 'host.example:5000/a/b:c@sha256:" + strings.Repeat("0", 64) + "'}", "", ""},

		"tasks = size":         {"{size: 4, tasks: 4}", "", ""},
		"tasks < size":         {"{size: 4, tasks: 3}", "spec.tasks", "tasks must be at least size"},
		"tasks < size of 1000": {"{size: 1000, tasks: 999}", "spec.tasks", "tasks must be at least size"},
		"minSize = size":       {"{size: 4, minSize: 4}", "", ""},
		"minSize > size":       {"{size: 4, minSize: 5}", "spec.minSize", "minSize must be at most size"},
		"minSize > no size":    {"{minSize: 2}", "spec.minSize", "minSize must be at most size"},

		"no command":              {"{command: null}", "spec.command", "Required value"},
		"empty command":           {"{command: []}", "spec.command", "spec.command in body should have at least 1 items"},
		"empty program":           {`{command: ["", a]}`, "spec.command", "must begin with the name of a program"},
		"empty argument":          {`{command: [a, ""]}`, "", ""},
		"program with NUL":        {`{command: ["a\0"]}`, "spec.command", "must not contain a NUL character"},
		"argument with NUL":       {`{command: [a, "b\0c"]}`, "spec.command", "must not contain a NUL character"},
		`argument with \x00`:      {`{command: [a, 'b\x00c']}`, "", ""},
		"argument with the rest":  {`{command: [a, "$(HOSTNAME) $HOME $$ '\"\n\t-- \u725b\U0001F404"]}`, "", ""},
		"longest argument":        {"{command: [a, " + letters(longestArgument) + "]}", "", ""},
		"argument that is longer": {"{command: [a, " + letters(longestArgument+1) + "]}", "spec.command[1]", "may not be more than 16384"},
		"longest command":         {"{command: " + argumentsOf(longestCommand, "a") + "}", "", ""},
		"command that is longer":  {"{command: " + argumentsOf(longestCommand+1, "a") + "}", "spec.command", "must be at most 196608 bytes of UTF-8 in all"},
		"longest command of cows": {"{command: " + argumentsOf(longestCommand, cow) + "}", "", ""},
		"longer command of cows":  {"{command: " + argumentsOf(longestCommand+1, cow) + "}", "spec.command", "must be at most 196608 bytes of UTF-8 in all"},

		"connectTimeout of 1s":           {"{broker: {connectTimeout: 1s}}", "", ""},
		"connectTimeout of 9999999s":     {"{broker: {connectTimeout: 9999999s}}", "", ""},
		"connectTimeout of 9 characters": {"{broker: {connectTimeout: 10000000s}}", "spec.broker.connectTimeout", "may not be more than 8"},
		"connectTimeout of 0s":           {"{broker: {connectTimeout: 0s}}", "spec.broker.connectTimeout", "spec.broker.connectTimeout in body should match"},
		"connectTimeout of 5":            {"{broker: {connectTimeout: '5'}}", "spec.broker.connectTimeout", "spec.broker.connectTimeout in body should match"},
		"connectTimeout of 5m":           {"{broker: {connectTimeout: 5m}}", "spec.broker.connectTimeout", "spec.broker.connectTimeout in body should match"},
		"connectTimeout of 1.5s":         {"{broker: {connectTimeout: 1.5s}}", "spec.broker.connectTimeout", "spec.broker.connectTimeout in body should match"},
	})
}

// cow is a character of four bytes.
const cow = "\U0001F42E"

// commandOf is a command of n bytes in total. Its last argument repeats the character as often as it fits.
func commandOf(n int, character string) []string {
	var all []string
	for n > 0 {
		argument := strings.Repeat(character, min(n/len(character), longestArgument))
		if argument == "" {
			argument = letters(n)
		}
		all = append(all, argument)
		n -= len(argument)
	}
	return all
}

func argumentsOf(n int, character string) string {
	return `["` + strings.Join(commandOf(n, character), `", "`) + `"]`
}

// TestTemplateRules checks that users cannot set what the operator sets in pods.
func TestTemplateRules(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	rows := map[string]apiRow{}
	reject := func(field, message string, format string, values ...string) {
		for _, value := range values {
			rows[field+" "+value] = apiRow{fmt.Sprintf("{template: {%s: %s}}", field, fmt.Sprintf(format, value)), "spec.template." + field, message}
		}
	}
	allow := func(field, format string, values ...string) {
		for _, value := range values {
			rows[field+" "+value] = apiRow{spec: fmt.Sprintf("{template: {%s: %s}}", field, fmt.Sprintf(format, value))}
		}
	}
	reject("labels", "labels must not have keys of", "{%s: v}",
		"flux-framework.org/attempt", "x.flux-framework.org/y", "batch.kubernetes.io/job-name", "job-name", "controller-uid",
		"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by")
	allow("labels", "{%s: v}", "app", "app.kubernetes.io/component", "flux-framework.org", "example.com/job-name")
	reject("annotations", "annotations must not have keys of", "{%s: v}", "flux-framework.org/started", "batch.kubernetes.io/job-completion-index")
	allow("annotations", "{%s: v}", "job-name", "example.com/flux-framework.org")
	reject("volumes", "names of volumes must not begin with flux-", "[{name: %s, emptyDir: {}}]", "flux-", "flux-secret")
	allow("volumes", "[{name: %s, emptyDir: {}}]", "flux", "fluxes", "my-flux-data")
	reject("volumeMounts", "volumeMounts must not be at /, nor at /flux", "[{name: v, mountPath: %s}]",
		"/", "/flux", "/flux/", "/flux/run", "/flux-config", "/flux-config/x", "/flux-secret", "/flux-secret/")
	allow("volumeMounts", "[{name: v, mountPath: %s}]", "/fluxes", "/flux-data", "/data/flux", "/tmp", "/data/", "/.data", "/data/..x", "/d./x")
	reject("volumeMounts", "volumeMounts must be at absolute paths without //", "[{name: v, mountPath: %s}]",
		"//flux", "//", "/data//x", "flux", "./flux", "''")
	reject("volumeMounts", "volumeMounts must be at paths without . or ..", "[{name: v, mountPath: %s}]",
		"/./flux-config", "/.", "/data/.", "/x/../flux-secret", "/..", "/x/..")
	reject("env", "env must not set FLUX_ variables", "[{name: %s, value: v}]", "FLUX_", "FLUX_URI", "JOB_COMPLETION_INDEX")
	allow("env", "[{name: %s, value: v}]", "FLUX", "MY_FLUX_URI", "flux_uri", "JOB_COMPLETION_INDEX_2")
	for list, format := range map[string]string{
		"env": "{name: E, value: %s}", "volumes": "{name: v, hostPath: {path: %s}}", "volumeMounts": "{mountPath: /m, name: %s}",
	} {
		rows["twice the same of "+list] = apiRow{
			spec:  fmt.Sprintf("{template: {%s: ["+format+", "+format+"]}}", list, "a", "b"),
			field: "spec.template." + list + "[1]", message: "Duplicate value",
		}
	}
	for field, most := range map[string]int{"env": longestEnv, "annotations": longestAnnotations} {
		format := map[string]string{"env": "[{name: A, value: a}, {name: B, value: %s}]", "annotations": "{a: a, b: %s}"}[field]
		for _, character := range []string{"a", cow} {
			rows["longest "+field+" of "+character] = apiRow{spec: fmt.Sprintf("{template: {%s: "+format+"}}", field, strings.Repeat(character, most-3))}
			rows["longer "+field+" of "+character] = apiRow{
				spec:  fmt.Sprintf("{template: {%s: "+format+"}}", field, strings.Repeat(character, most-2)),
				field: "spec.template." + field, message: fmt.Sprintf("%s must be at most %d characters in all", field, most),
			}
		}
	}
	for _, field := range []string{"labels", "nodeSelector"} {
		rows["longest "+field] = apiRow{spec: fmt.Sprintf("{template: {%s: {%s: %s}}}", field, letters(253)+"/"+letters(63), letters(63))}
		for name, row := range map[string]string{"key": "{" + letters(318) + ": a}", "value": "{a: " + letters(64) + "}"} {
			rows["longer "+name+" of "+field] = apiRow{
				spec:  fmt.Sprintf("{template: {%s: %s}}", field, row),
				field: "spec.template." + field, message: field + " must have keys of at most 317 characters, and values of at most 63",
			}
		}
	}
	rows["claim with labels"] = apiRow{spec: "{template: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {metadata: " +
		"{labels: {a: b}, annotations: {c: d}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}}"}
	rows["misspelled"] = apiRow{spec: "{template: {lables: {a: b}}}", message: `unknown field "spec.template.lables"`}
	w.checkRows(t, "Flux", fluxBase, rows)
	t.Run("FluxSetup", func(t *testing.T) { w.checkRows(t, "FluxSetup", fluxSetupBase, rows) })
}

// TestFluxNames checks valid and invalid names. The API server also accepts a Service and a Job for each valid name.
func TestFluxNames(t *testing.T) {
	t.Parallel()
	const tooLong, badForm = "must be at most 63 characters", "must begin with a letter and have no dots"
	w := newTestEnv(t)
	for _, row := range []struct {
		name    string
		size    int32
		message string
	}{
		{letters(56), 1, ""}, {letters(57), 1, tooLong},
		{letters(56), 10, ""}, {letters(57), 10, tooLong},
		{letters(55), 11, ""}, {letters(56), 11, tooLong},
		{letters(55), 100, ""}, {letters(56), 100, tooLong},
		{letters(54), 1000, ""}, {letters(55), 1000, tooLong},
		{"a", 1000, ""}, {"a-9", 4, ""}, {"a--b", 4, ""},
		{"a.b", 4, badForm}, {"1a", 4, badForm}, {"9", 4, badForm},
		{"Flux", 4, "a lowercase RFC 1123 subdomain must"}, {"a-", 4, "a lowercase RFC 1123 subdomain must"},
	} {
		t.Run(fmt.Sprintf("%s of %d", row.name, row.size), func(t *testing.T) {
			t.Parallel()
			flux := w.object("Flux", row.name, fluxBase, fmt.Sprintf("{size: %d}", row.size))
			err := w.client.Create(w.ctx, flux, strictly)
			if row.message != "" {
				NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("metadata.name"), ContainSubstring(row.message))))
				return
			}
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(w.client.Create(w.ctx, w.anyService(row.name), strictly)).To(Succeed())
			NewWithT(t).Expect(w.client.Create(w.ctx, w.anyJob(fmt.Sprintf("%s-%d", row.name, v1alpha1.MaxAttempts), row.size), strictly)).To(Succeed())
		})
	}
	// The API server itself sets the limit: it rejects a Job with a longer name.
	w.Expect(w.client.Create(w.ctx, w.anyJob(letters(62), 10), strictly)).To(MatchError(ContainSubstring("invalid DNS label")))
}

func (w *testEnv) anyService(name string) client.Object {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
	}
}

func (w *testEnv) anyJob(name string, size int32) client.Object {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: batchv1.JobSpec{
			Completions: &size, Parallelism: &size, CompletionMode: new(batchv1.IndexedCompletion),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Subdomain: name,
				Containers: []corev1.Container{{Name: "c", Image: "i"}},
			}},
		},
	}
}
