package e2e

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"example.com/workbook/03-flux/api/v1alpha1"
)

var _ = Describe("The samples", func() {
	It("all become Complete", func(ctx SpecContext) {
		w := newTestEnv(ctx)
		var fluxes []*v1alpha1.Flux
		for _, flux := range read("../../config/samples/v1alpha1_*.yaml") {
			Expect(flux.Spec.Image).NotTo(BeEmpty())
			flux.Namespace, flux.Spec.Image = w.namespace, env.Prepared
			Expect(env.Client.Create(ctx, flux)).To(Succeed(), flux.Name)
			fluxes = append(fluxes, flux)
		}
		for _, flux := range fluxes {
			w.complete(flux)
		}
	})
})

// read returns the Fluxes in the files that match a pattern.
func read(pattern string) []*v1alpha1.Flux {
	GinkgoHelper()
	files, err := filepath.Glob(pattern)
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	var fluxes []*v1alpha1.Flux
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		flux := &v1alpha1.Flux{}
		Expect(yaml.UnmarshalStrict(text, flux)).To(Succeed(), file)
		fluxes = append(fluxes, flux)
	}
	return fluxes
}
