package e2e

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

var _ = Describe("The samples", func() {
	It("all become Ready", func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		files, err := filepath.Glob("../../config/samples/v1alpha1_*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(files).NotTo(BeEmpty())
		var lolcows []*v1alpha1.Lolcow
		for _, file := range files {
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			lolcow := &v1alpha1.Lolcow{}
			Expect(yaml.UnmarshalStrict(text, lolcow)).To(Succeed(), file)
			lolcow.Namespace = namespace
			Expect(env.Client.Create(ctx, lolcow)).To(Succeed(), file)
			lolcows = append(lolcows, lolcow)
		}
		for _, lolcow := range lolcows {
			expectServing(ctx, lolcow)
		}
	})
})
