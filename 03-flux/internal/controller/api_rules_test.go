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

// What one argument may be, and what all may be together.
const (
	longestArgument = 16384
	longestCommand  = 262144
)

// TestFluxRules has, for every rule of the API that is more than a bound, values that are just in and just out.
func TestFluxRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
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
		"program with NUL":        {`{command: ["a\0"]}`, "spec.command", "must not hold a NUL character"},
		"argument with NUL":       {`{command: [a, "b\0c"]}`, "spec.command", "must not hold a NUL character"},
		`argument with \x00`:      {`{command: [a, 'b\x00c']}`, "", ""},
		"argument with the rest":  {`{command: [a, "$(HOSTNAME) $HOME $$ '\"\n\t-- \u725b\U0001F404"]}`, "", ""},
		"longest argument":        {"{command: [a, " + letters(longestArgument) + "]}", "", ""},
		"argument that is longer": {"{command: [a, " + letters(longestArgument+1) + "]}", "spec.command[1]", "may not be more than 16384"},
		"longest command":         {"{command: " + argumentsOf(longestCommand) + "}", "", ""},
		"command that is longer":  {"{command: " + argumentsOf(longestCommand+1) + "}", "spec.command", "must be at most 262144 characters in all"},

		"connectTimeout of 1s":           {"{broker: {connectTimeout: 1s}}", "", ""},
		"connectTimeout of 9999999s":     {"{broker: {connectTimeout: 9999999s}}", "", ""},
		"connectTimeout of 9 characters": {"{broker: {connectTimeout: 10000000s}}", "spec.broker.connectTimeout", "may not be more than 8"},
		"connectTimeout of 0s":           {"{broker: {connectTimeout: 0s}}", "spec.broker.connectTimeout", "spec.broker.connectTimeout in body should match"},
		"connectTimeout of 5":            {"{broker: {connectTimeout: '5'}}", "spec.broker.connectTimeout", "spec.broker.connectTimeout in body should match"},
		"connectTimeout of 5m":           {"{broker: {connectTimeout: 5m}}", "spec.broker.connectTimeout", "spec.broker.connectTimeout in body should match"},
		"connectTimeout of 1.5s":         {"{broker: {connectTimeout: 1.5s}}", "spec.broker.connectTimeout", "spec.broker.connectTimeout in body should match"},
	})
}

// argumentsOf is a command of n characters in all.
func argumentsOf(n int) string {
	var all []string
	for ; n > longestArgument; n -= longestArgument {
		all = append(all, letters(longestArgument))
	}
	return "[" + strings.Join(append(all, letters(n)), ", ") + "]"
}

// TestTemplateRules keeps what is the operator's out of what users say of the pods.
func TestTemplateRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows := map[string]apiRow{}
	refuse := func(field, message string, format string, values ...string) {
		for _, value := range values {
			rows[field+" "+value] = apiRow{fmt.Sprintf("{template: {%s: %s}}", field, fmt.Sprintf(format, value)), "spec.template." + field, message}
		}
	}
	allow := func(field, format string, values ...string) {
		for _, value := range values {
			rows[field+" "+value] = apiRow{spec: fmt.Sprintf("{template: {%s: %s}}", field, fmt.Sprintf(format, value))}
		}
	}
	refuse("labels", "labels must not have keys of", "{%s: v}",
		"flux-framework.org/attempt", "x.flux-framework.org/y", "batch.kubernetes.io/job-name", "job-name", "controller-uid",
		"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by")
	allow("labels", "{%s: v}", "app", "app.kubernetes.io/component", "flux-framework.org", "example.com/job-name")
	refuse("annotations", "annotations must not have keys of", "{%s: v}", "flux-framework.org/started", "batch.kubernetes.io/job-completion-index")
	allow("annotations", "{%s: v}", "job-name", "example.com/flux-framework.org")
	refuse("volumes", "names of volumes must not begin with flux-", "[{name: %s, emptyDir: {}}]", "flux-", "flux-secret")
	allow("volumes", "[{name: %s, emptyDir: {}}]", "flux", "fluxes", "my-flux-data")
	refuse("volumeMounts", "volumeMounts must not be at /, nor at /flux", "[{name: v, mountPath: %s}]",
		"/", "/flux", "/flux/", "/flux/run", "/flux-config", "/flux-config/x", "/flux-secret", "/flux-secret/")
	allow("volumeMounts", "[{name: v, mountPath: %s}]", "/fluxes", "/flux-data", "/data/flux", "/tmp")
	refuse("env", "env must not set FLUX_ variables", "[{name: %s, value: v}]", "FLUX_", "FLUX_URI", "JOB_COMPLETION_INDEX")
	allow("env", "[{name: %s, value: v}]", "FLUX", "MY_FLUX_URI", "flux_uri", "JOB_COMPLETION_INDEX_2")
	for list, format := range map[string]string{
		"env": "{name: E, value: %s}", "volumes": "{name: v, hostPath: {path: %s}}", "volumeMounts": "{mountPath: /m, name: %s}",
	} {
		rows["twice the same of "+list] = apiRow{
			spec:  fmt.Sprintf("{template: {%s: ["+format+", "+format+"]}}", list, "a", "b"),
			field: "spec.template." + list + "[1]", message: "Duplicate value",
		}
	}
	rows["misspelled"] = apiRow{spec: "{template: {lables: {a: b}}}", message: `unknown field "spec.template.lables"`}
	w.checkRows(t, "Flux", fluxBase, rows)
	t.Run("FluxSetup", func(t *testing.T) { w.checkRows(t, "FluxSetup", fluxSetupBase, rows) })
}

// TestFluxNames tries names on both sides of what may be one. Of the accepted ones, the API server takes a Service
// and a Job too.
func TestFluxNames(t *testing.T) {
	t.Parallel()
	const tooLong, badForm = "must be at most 63 characters", "must begin with a letter and have no dots"
	w := newWorld(t)
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
	// The bound is the API server's own: a Job of a longer name is refused.
	w.Expect(w.client.Create(w.ctx, w.anyJob(letters(62), 10), strictly)).To(MatchError(ContainSubstring("invalid DNS label")))
}

func (w *world) anyService(name string) client.Object {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
	}
}

func (w *world) anyJob(name string, size int32) client.Object {
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
