package e2e

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// What takes long begins early, so that no process runs alone at the end.
var _ = Describe("The samples", SpecPriority(1), func() {
	It("all become Complete, except the one that requests host access", func(ctx SpecContext) {
		w := newTestEnv(ctx)
		goops := read("../../config/samples/v1alpha1_*.yaml")
		for _, goop := range goops {
			simulates(goop.Spec.Cmd, endsWith(0, ""))
			if len(goop.Spec.CleanupCmd) > 0 {
				simulates(goop.Spec.CleanupCmd, endsWith(0, ""))
			}
			goop.Namespace = w.namespace
			Expect(env.Client.Create(ctx, goop)).To(Succeed(), goop.Name)
		}
		workers := w.workers()
		for _, goop := range goops {
			if goop.Spec.Host != nil {
				w.has(goop, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonHostAccessNotAllowed)
				continue
			}
			w.complete(goop, int(ptr.Deref(goop.Spec.JobCount, int32(len(workers)))))
		}
		for _, goop := range goops {
			w.delete(goop)
		}
		w.leaves()
	})
})

// read returns the Goops in the files that match a pattern.
func read(pattern string) []*v1alpha1.Goop {
	GinkgoHelper()
	files, err := filepath.Glob(pattern)
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	var goops []*v1alpha1.Goop
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		goop := &v1alpha1.Goop{}
		Expect(yaml.UnmarshalStrict(text, goop)).To(Succeed(), file)
		goops = append(goops, goop)
	}
	return goops
}
