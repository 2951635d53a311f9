package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestSamplesAreAccepted(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	var names []string
	for _, file := range sampleFiles(t, "v1alpha1_*.yaml") {
		_, object := readSample(w, file)
		w.Expect(w.client.Create(w.ctx, object, strictly)).To(Succeed(), file)
		names = append(names, filepath.Base(file))
	}
	// `kubectl apply -k config/samples` applies all of them.
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", "kustomization.yaml"))
	w.Expect(err).NotTo(HaveOccurred())
	var kustomization struct{ Resources []string }
	w.Expect(yaml.Unmarshal(text, &kustomization)).To(Succeed())
	w.Expect(kustomization.Resources).To(ConsistOf(names))
}

// Each invalid sample has the message of its rejection in its first line.
func TestInvalidSamplesAreRejected(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	for _, file := range sampleFiles(t, filepath.Join("invalid", "*.yaml")) {
		text, object := readSample(w, file)
		first, _, _ := strings.Cut(text, "\n")
		want, found := strings.CutPrefix(first, "# Rejected: ")
		w.Expect(found).To(BeTrue(), "%s has no line with the message of its rejection", file)
		w.Expect(w.client.Create(w.ctx, object, strictly)).To(MatchError(ContainSubstring(want)), file)
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

func readSample(w *testEnv, file string) (string, *unstructured.Unstructured) {
	text, err := os.ReadFile(file)
	w.Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{}
	w.Expect(yaml.Unmarshal(text, object)).To(Succeed(), file)
	object.SetNamespace(w.namespace)
	return string(text), object
}
