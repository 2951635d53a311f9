package operator

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/shared/deploy"
)

func testManifest(t *testing.T) *manifest {
	t.Helper()
	objects, err := deploy.Render("../deploy/testdata/stage", "default", nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := findManifest(objects)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFindManifest(t *testing.T) {
	m := testManifest(t)
	if m.container.Name != "manager" {
		t.Errorf("the operator's container is %q, want manager", m.container.Name)
	}
	if got, want := m.user(), "system:serviceaccount:teapot-system:controller-manager"; got != want {
		t.Errorf("got user %s, want %s", got, want)
	}
	if port, err := m.metricsPort(); err != nil || port != 8443 {
		t.Errorf("got metrics port %d, %v, want 8443", port, err)
	}
	for _, object := range m.rest {
		if object.GetKind() == "Deployment" {
			t.Error("the operator's Deployment is among the objects to apply: there would be two writers")
		}
	}
	if len(m.rest) != 2 {
		t.Errorf("got %d other objects, want the namespace and the CRD", len(m.rest))
	}
}

func TestAddArgs(t *testing.T) {
	objects, err := deploy.Render("../deploy/testdata/stage", "iced", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := AddArgs(objects, "--cups=2"); err != nil {
		t.Fatal(err)
	}
	m, err := findManifest(objects)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"--metrics-bind-address=:8443", "--iced", "--cups=2"}; !slices.Equal(m.container.Args, want) {
		t.Errorf("got %q, want %q", m.container.Args, want)
	}
	if sidecar := m.deployment.Spec.Template.Spec.Containers[0]; len(sidecar.Args) > 0 {
		t.Errorf("the sidecar was given %q", sidecar.Args)
	}
}

// What a deployed container runs, a process runs too.
func TestProgram(t *testing.T) {
	m, stage := testManifest(t), t.TempDir()
	if err := os.MkdirAll(filepath.Join(stage, "cmd", "raw"), 0o700); err != nil {
		t.Fatal(err)
	}
	for want, commands := range map[string][][]string{
		"raw":     {{"/raw"}, {"raw", "--flag"}},
		"manager": {nil, {"/manager"}, {"/bin/sh", "-c", "/raw"}},
	} {
		for _, m.container.Command = range commands {
			if got := m.program(stage); got != want {
				t.Errorf("%q runs %s, want %s", m.container.Command, got, want)
			}
		}
	}
}

func TestEnvironment(t *testing.T) {
	m := testManifest(t)
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	m.container.Env = []corev1.EnvVar{
		{Name: "PLAIN", Value: "a=b c"},
		{Name: "POD_NAMESPACE", ValueFrom: field("metadata.namespace")},
		{Name: "POD_NAME", ValueFrom: field("metadata.name")},
		{Name: "NODE", ValueFrom: field("spec.nodeName")},
		{Name: "ACCOUNT", ValueFrom: field("spec.serviceAccountName")},
	}
	got, err := m.environment(1)
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"PLAIN=a=b c", "POD_NAMESPACE=teapot-system", "POD_NAME=" + host + "-1", "NODE=" + host, "ACCOUNT=controller-manager"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	for name, source := range map[string]*corev1.EnvVarSource{
		"a field that only a pod has": field("status.podIP"),
		"a secret":                    {SecretKeyRef: &corev1.SecretKeySelector{}},
	} {
		m.container.Env = []corev1.EnvVar{{Name: "IMPOSSIBLE", ValueFrom: source}}
		if _, err := m.environment(1); err == nil || !strings.Contains(err.Error(), "IMPOSSIBLE") {
			t.Errorf("%s: got error %v, want one that names the variable", name, err)
		}
	}
}
