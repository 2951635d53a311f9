package controller

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

var fluxSetupFields = []fieldRow{
	{"image", "a", "b", false},
	{"command", "[a, b]", "[a, c]", false},
	{"mode", "Launcher", "Submit", false},
	{"size", "2", "3", false},
	{"minSize", "1", "2", false},
	{"tasks", "4", "5", false},
	{"cores", "2", "3", false},
	{"resources", "{limits: {cpu: '1'}}", "{limits: {cpu: '2'}}", false},
	{"template", "{labels: {a: b}}", "{labels: {a: c}}", false},
	{"broker", "{port: 8051, connectTimeout: 5s, logLevel: 3}", "{port: 8051, connectTimeout: 5s, logLevel: 4}", false},
	{"startupTimeoutSeconds", "10", "20", true},
	{"activeDeadlineSeconds", "10", "20", true},
	{"suspend", "true", "false", true},
}

// TestFluxSetupIsImmutable changes and removes each field of a FluxSetup except attempt, restarts and launch, which
// have their own rules.
func TestFluxSetupIsImmutable(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	expectAllFields(t, v1alpha1.FluxSetupSpec{}, fluxSetupFields, "attempt", "restarts", "launch")
	setup := w.object("FluxSetup", "x", "{attempt: 1, restarts: 0}", withAll(fluxSetupFields))
	w.Expect(w.client.Create(w.ctx, setup)).To(Succeed())
	w.Expect(w.patch(setup, "{}")).To(Succeed(), "an update without a change")
	for _, field := range fluxSetupFields {
		t.Run(field.name, func(t *testing.T) {
			t.Parallel()
			for what, value := range map[string]string{"changed": field.other, "removed": "null"} {
				want := "is immutable"
				switch {
				case what == "removed" && field.name == "activeDeadlineSeconds":
					want = ""
				case what == "removed":
					want = "Required value"
				case field.may:
					want = ""
				}
				t.Run(what, func(t *testing.T) {
					expectError(t, w.patch(setup, fmt.Sprintf("{%s: %s}", field.name, value)), "spec."+field.name, want)
				})
			}
		})
	}
}

func TestFluxSetupRules(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	launch := func(fields string) string { return "{launch: {" + fields + "}}" }
	const now = "time: '2026-01-01T00:00:00Z'"
	rows := map[string]apiRow{
		"the least":         {"{}", "", ""},
		"misspelled":        {"{atempt: 1}", "", `unknown field "spec.atempt"`},
		"other mode":        {"{mode: launcher}", "spec.mode", `supported values: "Submit", "Launcher"`},
		"empty image":       {"{image: ''}", "spec.image", "spec.image in body should be at least 1 chars long"},
		"empty command":     {"{command: []}", "spec.command", "spec.command in body should have at least 1 items"},
		"longest argument":  {"{command: [" + letters(longestArgument) + "]}", "", ""},
		"longer argument":   {"{command: [" + letters(longestArgument+1) + "]}", "spec.command[0]", "may not be more than 16384"},
		"a launch":          {launch("attempt: 1, " + now), "", ""},
		"launch to come":    {launch("attempt: 2, " + now), "spec.launch", "launch.attempt must be at most attempt"},
		"launch 0":          {launch("attempt: 0, " + now), "spec.launch.attempt", "should be greater than or equal to 1"},
		"launch at no time": {launch("attempt: 1"), "spec.launch.time", "Required value"},
		"last attempt":      {"{attempt: 9999}", "", ""},
		"attempt after it":  {"{attempt: 10000}", "spec.attempt", "should be less than or equal to 9999"},
		"empty jobUID":      {launch("attempt: 1, jobUID: '', " + now), "spec.launch.jobUID", "should be at least 1 chars long"},
		"longest jobUID":    {launch("attempt: 1, jobUID: " + letters(64) + ", " + now), "", ""},
		"longer jobUID":     {launch("attempt: 1, jobUID: " + letters(65) + ", " + now), "spec.launch.jobUID", "may not be more than 64"},
	}
	w.checkRows(t, "FluxSetup", fluxSetupBase, rows)
}

// TestAttempts checks which changes are valid after attempt 3 with one restart.
func TestAttempts(t *testing.T) {
	t.Parallel()
	const only, onlyRestarts = "attempt can only increase, by 1", "restarts can only increase, by 1, and only together with attempt"
	w := newTestEnv(t)
	setup := w.object("FluxSetup", "x", fluxSetupBase, "{attempt: 3, restarts: 1}")
	w.Expect(w.client.Create(w.ctx, setup)).To(Succeed())
	w.checkPatches(t, setup, map[string]apiRow{
		"the same":                {"{attempt: 3, restarts: 1}", "", ""},
		"a resume":                {"{attempt: 4}", "", ""},
		"a restart":               {"{attempt: 4, restarts: 2}", "", ""},
		"attempt + 2":             {"{attempt: 5}", "spec.attempt", only},
		"attempt + 2, a restart":  {"{attempt: 5, restarts: 2}", "spec.attempt", only},
		"attempt - 1":             {"{attempt: 2}", "spec.attempt", only},
		"a restart alone":         {"{restarts: 2}", "spec.restarts", onlyRestarts},
		"two restarts":            {"{attempt: 4, restarts: 3}", "spec.restarts", onlyRestarts},
		"restarts - 1":            {"{restarts: 0}", "spec.restarts", onlyRestarts},
		"restarts - 1, a resume":  {"{attempt: 4, restarts: 0}", "spec.restarts", onlyRestarts},
		"suspend, with a restart": {"{attempt: 4, restarts: 2, suspend: true}", "", ""},
	})
}

// TestLaunch checks which changes of the record of an attempt are valid.
func TestLaunch(t *testing.T) {
	t.Parallel()
	const (
		staysTime   = "time can change only with attempt, or when jobUID is set"
		staysJobUID = "once jobUID is set, it changes with attempt, and only then"
	)
	w := newTestEnv(t)
	const launch = "launch: {attempt: 2, time: '2026-01-01T00:00:00Z'"
	begun := w.object("FluxSetup", "begun", fluxSetupBase, "{attempt: 3, restarts: 1, "+launch+"}}")
	made := w.object("FluxSetup", "made", fluxSetupBase, "{attempt: 3, restarts: 1, "+launch+", jobUID: u}}")
	none := w.object("FluxSetup", "none", fluxSetupBase, "")
	for _, setup := range []client.Object{begun, made, none} {
		w.Expect(w.client.Create(w.ctx, setup)).To(Succeed())
	}
	w.checkPatches(t, none, map[string]apiRow{
		"none, and one":        {"{launch: {attempt: 1, time: '2026-01-01T00:00:00Z'}}", "", ""},
		"none, and one higher": {"{launch: {attempt: 2, time: '2026-01-01T00:00:00Z'}}", "spec.launch", "launch.attempt must be at most attempt"},
	})
	w.checkPatches(t, begun, map[string]apiRow{
		"jobUID":           {"{launch: {jobUID: u}}", "", ""},
		"removed":          {"{launch: null}", "spec.launch", "launch cannot be removed"},
		"jobUID, and when": {"{launch: {jobUID: u, time: '2026-01-01T00:00:01Z'}}", "", ""},
		"other time":       {"{launch: {time: '2026-01-01T00:00:01Z'}}", "spec.launch.time", staysTime},
		"next attempt":     {"{launch: {attempt: 3, time: '2026-01-01T00:00:01Z'}}", "", ""},
		"next, same time":  {"{launch: {attempt: 3}}", "", ""},
		"next, too high":   {"{launch: {attempt: 4}}", "spec.launch", "launch.attempt must be at most attempt"},
		"attempt before":   {"{launch: {attempt: 1}}", "spec.launch.attempt", "attempt must not decrease"},
	})
	w.checkPatches(t, made, map[string]apiRow{
		"set, and removed":        {"{launch: null}", "spec.launch", "launch cannot be removed"},
		"made, and other time":    {"{launch: {time: '2026-01-01T00:00:01Z'}}", "spec.launch.time", staysTime},
		"other jobUID":            {"{launch: {jobUID: v}}", "spec.launch.jobUID", staysJobUID},
		"no jobUID":               {"{launch: {jobUID: null}}", "spec.launch.jobUID", staysJobUID},
		"next, without jobUID":    {"{launch: {attempt: 3, jobUID: null}}", "", ""},
		"next, with another":      {"{launch: {attempt: 3, jobUID: v}}", "", ""},
		"next, with the same one": {"{launch: {attempt: 3}}", "spec.launch.jobUID", staysJobUID},
	})
}

func (w *testEnv) checkPatches(t *testing.T, object client.Object, rows map[string]apiRow) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectError(t, w.patch(object, row.spec), row.field, row.message)
		})
	}
}
