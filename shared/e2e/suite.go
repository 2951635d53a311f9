package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/shared/artifacts"
	"example.com/workbook/shared/cluster"
)

// LabelContainers marks specs that need a running container: `Label(e2e.LabelContainers)`. They are
// skipped on an embedded cluster, and the run ends by saying how many.
const LabelContainers = "containers"

// dumpTimeout bounds what a failed spec spends on artifacts.
const dumpTimeout = time.Minute

// Suite declares the set-up and the end of a stage's suite, and returns the environment, which is
// filled in before the first spec runs. Call it once, at the top of the suite, or in the Test function before RunSpecs if the
// stage depends on a flag:
//
//	var env = e2e.Suite(e2e.Stage{Name: "02-lolcow", Dir: "../..", …})
//
// Of Ginkgo's parallel processes the first does the set-up and holds the operator, the others attach to it. Specs run
// beside others, each in namespaces of its own; one that starts or ends the operator, or changes a node, is Serial.
func Suite(stage Stage) *Env {
	env := &Env{}
	hungUp := interruptOnHangUp()
	ginkgo.SynchronizedBeforeSuite(func(ctx ginkgo.SpecContext) []byte {
		made, err := Setup(ctx, os.Stdout, stage)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		*env = *made
		text, err := env.attachment()
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		return text
	}, func(ctx ginkgo.SpecContext, text []byte) {
		if ginkgo.GinkgoParallelProcess() > 1 {
			made, err := attach(ctx, stage, text)
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			*env = *made
		}
	})
	end := func(ctx ginkgo.SpecContext) { gomega.Expect(env.Close(ctx)).To(gomega.Succeed()) }
	ginkgo.SynchronizedAfterSuite(func(ctx ginkgo.SpecContext) {
		// The ginkgo program, without which the first process does not learn that the others have ended, has gone with the
		// terminal.
		if hungUp() {
			end(ctx)
		}
	}, end)
	ginkgo.BeforeEach(func() {
		env.namespaces = nil
		if slices.Contains(ginkgo.CurrentSpecReport().Labels(), LabelContainers) && !env.Cluster.RunsContainers() {
			ginkgo.Skip("they need containers")
		}
	})
	ginkgo.JustAfterEach(func(ctx ginkgo.SpecContext) {
		if report := ginkgo.CurrentSpecReport(); report.Failed() {
			env.dump(ctx, report.LeafNodeText)
		}
	})
	ginkgo.ReportAfterSuite("summary", func(report ginkgo.Report) { fmt.Print(summary(report)) })
	return env
}

// NamespaceOption changes a namespace before it is created.
type NamespaceOption func(*corev1.Namespace)

// Restricted has the API server reject pods that do not meet the restricted Pod Security level.
func Restricted(n *corev1.Namespace) {
	n.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
}

// ManualPods has an embedded cluster leave the status of all pods in the namespace to the spec (see
// cluster.ManualPodsLabel). It means nothing on kind.
func ManualPods(n *corev1.Namespace) {
	n.Labels[cluster.ManualPodsLabel] = "true"
}

// Namespace makes a namespace for the present spec, and deletes it when the spec ends, without
// waiting.
func (e *Env) Namespace(ctx context.Context, options ...NamespaceOption) string {
	ginkgo.GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: map[string]string{}}}
	for _, option := range options {
		option(namespace)
	}
	gomega.Expect(e.Client.Create(ctx, namespace)).To(gomega.Succeed())
	e.namespaces = append(e.namespaces, namespace.Name)
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { //nolint:contextcheck // the spec's own context ends with it
		gomega.Expect(e.Client.Delete(ctx, namespace)).To(gomega.Succeed())
	})
	return namespace.Name
}

// dump keeps what is available of the spec's namespaces and of the operator. What is not available must
// not hide why the spec failed, so it is only mentioned.
func (e *Env) dump(ctx context.Context, spec string) {
	ctx, cancel := context.WithTimeout(ctx, dumpTimeout)
	defer cancel()
	dir := filepath.Join(e.Artifacts, fileName(spec))
	if err := artifacts.Dump(ctx, e.Cluster, dir, append(e.namespaces, e.Operator.Namespace())...); err != nil {
		fmt.Fprintf(ginkgo.GinkgoWriter, "not everything could be kept: %v\n", err)
	}
	if log, err := e.Operator.Logs(ctx); err != nil {
		fmt.Fprintf(ginkgo.GinkgoWriter, "not everything could be kept: %v\n", err)
	} else if err := os.WriteFile(filepath.Join(dir, "operator.log"), []byte(log), 0o644); err != nil {
		fmt.Fprintf(ginkgo.GinkgoWriter, "not everything could be kept: %v\n", err)
	}
	fmt.Fprintf(ginkgo.GinkgoWriter, "objects, events and logs are in %s\n", dir)
}

// fileName makes the text of a spec usable as the name of a folder.
func fileName(text string) string {
	text = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, text)
	return strings.Trim(text[:min(len(text), 60)], "-")
}
