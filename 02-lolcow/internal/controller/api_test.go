package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// strictly is `kubectl apply --validate=strict`: the API server answers an unknown field with an error.
var strictly = &client.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}

// TestValidation has, for every rule of the API, values that are just in and just out.
func TestValidation(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	spec := func(s v1alpha1.LolcowSpec) *v1alpha1.Lolcow { return f.lolcow("cow", s) }
	named := func(name string) *v1alpha1.Lolcow { return f.lolcow(name, v1alpha1.LolcowSpec{}) }
	for name, test := range map[string]struct {
		lolcow *v1alpha1.Lolcow
		want   string // part of the message; empty: accepted
	}{
		"nothing but a name":       {spec(v1alpha1.LolcowSpec{}), ""},
		"lowest port":              {spec(v1alpha1.LolcowSpec{Port: new(int32(30000))}), ""},
		"highest port":             {spec(v1alpha1.LolcowSpec{Port: new(int32(32767))}), ""},
		"port 80":                  {spec(v1alpha1.LolcowSpec{Port: new(int32(80))}), "spec.port in body should be greater than or equal to 30000"},
		"port 32768":               {spec(v1alpha1.LolcowSpec{Port: new(int32(32768))}), "spec.port in body should be less than or equal to 32767"},
		"no replica":               {spec(v1alpha1.LolcowSpec{Replicas: new(int32(0))}), ""},
		"10 replicas":              {spec(v1alpha1.LolcowSpec{Replicas: new(int32(10))}), ""},
		"11 replicas":              {spec(v1alpha1.LolcowSpec{Replicas: new(int32(11))}), "spec.replicas in body should be less than or equal to 10"},
		"-1 replicas":              {spec(v1alpha1.LolcowSpec{Replicas: new(int32(-1))}), "spec.replicas in body should be greater than or equal to 0"},
		"greeting of 1,024":        {spec(v1alpha1.LolcowSpec{Greeting: strings.Repeat("\u725b", 1024)}), ""},
		"greeting of 1,025":        {spec(v1alpha1.LolcowSpec{Greeting: strings.Repeat("m", 1025)}), "spec.greeting: Too long: may not be more than 1024"},
		"greeting with NUL":        {spec(v1alpha1.LolcowSpec{Greeting: "moo\x00"}), "must not contain a NUL character"},
		"greeting with \\x00":      {spec(v1alpha1.LolcowSpec{Greeting: `moo\x00`}), ""},
		"image of 1,025":           {spec(v1alpha1.LolcowSpec{Image: strings.Repeat("i", 1025)}), "spec.image: Too long: may not be more than 1024"},
		"image with a space":       {spec(v1alpha1.LolcowSpec{Image: "my image"}), `spec.image: Invalid value: "my image": must not contain white space`},
		"image with all":           {spec(v1alpha1.LolcowSpec{Image: "host.example:5000/a/b:c@sha256:" + strings.Repeat("0", 64)}), ""},
		"name of 63":               {named(strings.Repeat("n", 63)), ""},
		"name of 64":               {named(strings.Repeat("n", 64)), "metadata.name must be at most 63 characters"},
		"name with a dot":          {named("a.b"), "metadata.name must not contain a dot"},
		"name that begins with 1":  {named("1cow"), ""},
		"name with capital letter": {named("Cow"), "metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := f.client.Create(f.ctx, test.lolcow, strictly)
			if test.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

// Whatever name a Lolcow may have, its children may have too.
func TestEveryAcceptedNameWorks(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	for _, name := range []string{strings.Repeat("n", 63), "1cow", "9"} {
		lolcow := f.create(name, v1alpha1.LolcowSpec{})
		f.expectReady(lolcow, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	}
}

func TestSamplesAreAccepted(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	for _, file := range sampleFiles(t, "*.yaml") {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		_, object := readSample(f, file)
		f.Expect(f.client.Create(f.ctx, object, strictly)).To(Succeed(), file)
	}
}

// Each invalid sample names in its first line the message that it is rejected with.
func TestInvalidSamplesAreRejected(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	for _, file := range sampleFiles(t, filepath.Join("invalid", "*.yaml")) {
		text, object := readSample(f, file)
		first, _, _ := strings.Cut(text, "\n")
		want, found := strings.CutPrefix(first, "# Rejected: ")
		f.Expect(found).To(BeTrue(), "%s does not say why it is rejected", file)
		f.Expect(f.client.Create(f.ctx, object, strictly)).To(MatchError(ContainSubstring(want)), file)
	}
}

func sampleFiles(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples match %s: %v", pattern, err)
	}
	return files
}

func readSample(f *testEnv, file string) (string, *unstructured.Unstructured) {
	text, err := os.ReadFile(file)
	f.Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{}
	f.Expect(yaml.Unmarshal(text, object)).To(Succeed(), file)
	object.SetNamespace(f.namespace)
	return string(text), object
}
