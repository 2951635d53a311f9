package conformance

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// strictly is `kubectl apply --validate=strict`: the API server rejects an unknown field.
var strictly = &client.CreateOptions{FieldValidation: metav1.FieldValidationStrict}

// inputScenarios are about what users write.
var inputScenarios = []Scenario{
	{"does not get invalid changes", func(s *scenarioRun) {
		f := s.createReady("web", "web-server")
		for _, patch := range []string{
			`{"spec":{"replicas":-1}}`, `{"spec":{"deploymentName":"A"}}`, `{"spec":{"deploymentName":null}}`, `{"spec":null}`,
		} {
			err := s.Client.Patch(s.ctx, f.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
			s.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrue(), "%s: %v", patch, err)
		}
		s.expectAvailable(f, 1)
	}},

	{"makes every sample Ready", func(s *scenarioRun) {
		for _, file := range s.samples("*.yaml") {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			_, object := s.readSample(file)
			s.Expect(s.Client.Create(s.ctx, object, strictly)).To(gomega.Succeed(), file)
			f := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: object.GetName()}}
			s.get(s, f)
			s.expectAvailable(f, *f.Spec.Replicas)
		}
	}},

	// The first line of each invalid sample has the message of its rejection.
	{"does not get any of the invalid samples", func(s *scenarioRun) {
		for _, file := range s.samples(filepath.Join("invalid", "*.yaml")) {
			text, object := s.readSample(file)
			first, _, _ := strings.Cut(text, "\n")
			want, found := strings.CutPrefix(first, "# Rejected: ")
			s.Expect(found).To(gomega.BeTrue(), "%s does not say why it is rejected", file)
			s.Expect(s.Client.Create(s.ctx, object, strictly)).To(gomega.MatchError(gomega.ContainSubstring(want)), file)
		}
	}},
}

// samples returns the files of config/samples that match, wherever the suite runs.
func (s *scenarioRun) samples(pattern string) []string {
	_, here, _, _ := runtime.Caller(0)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(here), "..", "..", "config", "samples", pattern))
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(files).NotTo(gomega.BeEmpty(), "no sample matches %s", pattern)
	return files
}

func (s *scenarioRun) readSample(file string) (string, *unstructured.Unstructured) {
	text, err := os.ReadFile(file)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	object := &unstructured.Unstructured{}
	s.Expect(yaml.Unmarshal(text, object)).To(gomega.Succeed(), file)
	object.SetNamespace(s.Namespace)
	return string(text), object
}
