package controller

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// TestGoopRules has, for every validation rule that is more than a bound, the last values that are accepted and the first
// that are rejected.
func TestGoopRules(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	rows := map[string]apiRow{
		"the least":          {"{}", "", ""},
		"misspelled":         {"{comand: [x]}", "", `unknown field "spec.comand"`},
		"no cmd":             {"{cmd: null}", "spec.cmd", "Required value"},
		"Continue":           {"{failurePolicy: Continue}", "", ""},
		"FailFast":           {"{failurePolicy: FailFast}", "", ""},
		"other policy":       {"{failurePolicy: failfast}", "spec.failurePolicy", `supported values: "Continue", "FailFast"`},
		"empty image":        {`{image: ""}`, "spec.image", "spec.image in body should be at least 1 chars long"},
		"image with a space": {"{image: a b}", "spec.image", "must not contain white space"},
		"image with a line":  {`{image: "a\n"}`, "spec.image", "must not contain white space"},
		"image with all":     {"{image: 'host.example:5000/a/b:c@sha256:" + strings.Repeat("0", 64) + "'}", "", ""},

		"host of nothing":   {"{host: {}}", "", ""},
		"host None":         {"{host: {root: None}}", "", ""},
		"host ReadOnly":     {"{host: {root: ReadOnly, pid: true, network: true}}", "", ""},
		"host ReadWrite":    {"{host: {root: ReadWrite}}", "", ""},
		"host of all":       {"{host: {root: All}}", "spec.host.root", `supported values: "None", "ReadOnly", "ReadWrite"`},
		"host with another": {"{host: {ipc: true}}", "", `unknown field "spec.host.ipc"`},

		"env of others":      {"{env: [{name: NODE, value: a}, {name: MY_NODE_NAME, value: b}, {name: a.b-c d, value: c}]}", "", ""},
		"env of a field":     {"{env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]}", "", ""},
		"env twice":          {"{env: [{name: A}, {name: A}]}", "spec.env[1]", "Duplicate value"},
		"env without a name": {"{env: [{value: a}]}", "spec.env[0].name", "Required value"},
		"env with NUL":       {`{env: [{name: A, value: "a\0b"}]}`, "spec.env[0].value", "must not contain a NUL character"},
		"env with controls":  {`{env: [{name: A, value: "\x01\t\n\x7f"}, {name: B, value: 'a\x00'}]}`, "", ""},
	}
	for _, name := range []string{"A=B", "\u00fc", "a\tb"} {
		rows["env "+name] = apiRow{fmt.Sprintf("{env: [{name: %q}]}", name), "spec.env[0].name", "spec.env[0].name in body should match"}
	}
	rows["env of no letters"] = apiRow{`{env: [{name: ""}]}`, "spec.env[0].name", "spec.env[0].name in body should be at least 1 chars long"}
	for _, name := range []string{"NODE_NAME", "GOOP_NAME", "GOOP_ROUND"} {
		rows["env "+name] = apiRow{fmt.Sprintf("{env: [{name: X}, {name: %s}]}", name), "spec.env", "must not set NODE_NAME, GOOP_NAME or GOOP_ROUND"}
	}
	for _, field := range []string{"cmd", "cleanupCmd"} {
		at := "spec." + field
		for name, row := range map[string]apiRow{
			"empty":                   {"[]", at, at + " in body should have at least 1 items"},
			"empty program":           {`["", a]`, at, "must begin with the name of a program"},
			"empty argument":          {`[a, ""]`, "", ""},
			"program with NUL":        {`["a\0"]`, at, "must not contain a NUL character"},
			"argument with NUL":       {`[a, "b\0c"]`, at, "must not contain a NUL character"},
			`argument with \x00`:      {`[a, 'b\x00c']`, "", ""},
			"argument with the rest":  {`[a, "$(HOSTNAME) $HOME $$ '\"\n\t-- \u725b\U0001F404\x7f"]`, "", ""},
			"longest argument":        {"[a, " + letters(8192) + "]", "", ""},
			"argument that is longer": {"[a, " + letters(8193) + "]", at + "[1]", "may not be more than 8192"},
		} {
			row.spec = fmt.Sprintf("{%s: %s}", field, row.spec)
			rows[field+" "+name] = row
		}
	}
	w.checkRows(t, rows)
}

// TestGoopNames tries names of the maximum length and one character more. The API server accepts all dependents of the
// longest.
func TestGoopNames(t *testing.T) {
	t.Parallel()
	const tooLong, badForm = "metadata.name must be at most 54 characters", "a lowercase RFC 1123 subdomain must"
	w := newTestEnv(t)
	for name, message := range map[string]string{
		letters(54): "", letters(55): tooLong, "a": "", "1a": "", "a.b": "", "a-": badForm, "A": badForm,
	} {
		expectError(t, w.client.Create(w.ctx, w.object(name, goopBase, ""), strictly), "", message)
	}
	for _, name := range []string{letters(54), "a.b", "1"} {
		goop := aGoop(cleanup)
		goop.Name, goop.Namespace = name, w.namespace
		for _, daemonSet := range []*appsv1.DaemonSet{
			desiredRound(goop, plan.Round{Number: v1alpha1.MaxRounds - 1, Everywhere: true}, testImages), desiredCleanup(goop, []string{"a"}, testImages),
		} {
			w.Expect(w.client.Create(w.ctx, daemonSet)).To(Succeed())
			w.Expect(w.client.Create(w.ctx, podOf(daemonSet, "a"))).To(Succeed())
		}
	}
}
