package main

import (
	"strings"
	"testing"
)

func TestRewriteGo(t *testing.T) {
	const source = `package controller

import (
	"fmt"

	upstream "github.com/vsoch/moo"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/internal/lolcow/wrap"
)

// LolcowReconciler makes Lolcows so, as https://github.com/vsoch/lolcow-operator did.
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=get
type LolcowReconciler struct {
	Image string ` + "`json:\"lolcowImage\"`" + `
	N     int
}

func (r *LolcowReconciler) start(lolcow *v1alpha1.Lolcow) {
	fmt.Println("lolcow", lolcow.Name, upstream.Lolcow, wrap.Lolcow, "cow", lolcow.Moo())
}
`
	const want = `package controller

import (
	"fmt"

	upstream "github.com/vsoch/moo"

	"github.com/me/my-op/api/v1alpha1"
	"github.com/me/my-op/internal/teapot/wrap"
)

// TeapotReconciler makes Teapots so, as https://github.com/vsoch/lolcow-operator did.
// +kubebuilder:rbac:groups=me.dev,resources=teapots/status,verbs=get
type TeapotReconciler struct {
	Image string ` + "`json:\"teapotImage\"`" + `
	N     int
}

func (r *TeapotReconciler) start(teapot *v1alpha1.Teapot) {
	fmt.Println("teapot", teapot.Name, upstream.Lolcow, wrap.Teapot, "cow", teapot.Moo())
}
`
	got, err := lolcowNames(t, "Teapot").rewrite("internal/controller/lolcow_controller.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestRewriteGoKeepsOtherPackages(t *testing.T) {
	const source = "package a\n\nimport \"github.com/vsoch/lolcow\"\n\nvar _ = lolcow.Lolcow\n"
	got, err := lolcowNames(t, "Teapot").rewrite("a.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != source {
		t.Errorf("got:\n%s", got)
	}
}

func TestRewriteGoFailsForWhatIsNotGo(t *testing.T) {
	if _, err := lolcowNames(t, "Teapot").rewrite("a.go", []byte("lolcow")); err == nil {
		t.Error("no error")
	}
}

func TestRewriteYAML(t *testing.T) {
	const source = `# A Lolcow that greets: äöü.
apiVersion: my.domain/v1alpha1
kind:   Lolcow   # the kind
metadata:
    name: "lolcow-sample"
    labels: {app: lolcow, cow: "yes"}
spec:
- plain
-   greeting: |
      I am a
      lolcow.
---
äö: lolcow
data:
  broker.toml: lolcow = 1
`
	want := strings.NewReplacer("my.domain", "me.dev", "Lolcow", "Teapot", "lolcow", "teapot").Replace(source)
	want = strings.Replace(want, "broker.toml: teapot", "broker.toml: lolcow", 1)
	r := lolcowNames(t, "Teapot")
	keep, err := compile([]keepRule{{Match: ".+", In: []string{"data.broker.toml"}}})
	if err != nil {
		t.Fatal(err)
	}
	r.keep = keep
	got, err := r.rewrite("config/samples/a.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestRewriteModule(t *testing.T) {
	const source = `module example.com/workbook/02-lolcow/test/e2e

go 1.26.0

require (
	example.com/workbook/02-lolcow v0.0.0
	example.com/workbook/shared v0.0.0
	github.com/onsi/gomega v1.44.0
	github.com/vsoch/lolcow v1.0.0 // indirect
)

replace (
	example.com/workbook/02-lolcow => ../..
	example.com/workbook/shared => ../../../shared
)
`
	const want = `module github.com/me/my-op/test/e2e

go 1.26.0

require (
	github.com/me/my-op v0.0.0
	github.com/me/my-op/hack/harness/shared v0.0.0
	github.com/onsi/gomega v1.44.0
	github.com/vsoch/lolcow v1.0.0 // indirect
)

replace (
	github.com/me/my-op => ../..
	github.com/me/my-op/hack/harness/shared => ../../hack/harness/shared
)
`
	got, err := lolcowNames(t, "Teapot").rewrite("test/e2e/go.mod", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	got, err = relocate(origin{file: "02-lolcow/test/e2e/go.mod", to: "test/e2e/go.mod"}, got)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestRewriteLeavesSumsAndBinariesAlone(t *testing.T) {
	for file, content := range map[string]string{"go.sum": "lolcow v1", "LICENSE": "lolcow", "cow.png": "lolcow\x00"} {
		got, err := lolcowNames(t, "Teapot").rewrite(file, []byte(content))
		if err != nil || string(got) != content {
			t.Errorf("%s became %q, %v", file, got, err)
		}
	}
}
