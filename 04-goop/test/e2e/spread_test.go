package e2e

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/e2e"
)

var _ = Describe("The work of a Goop", func() {
	spec("without a jobCount is done once on every node", func(w *testEnv) {
		pods := w.watch()
		nodes := w.nodes()
		goop := w.create("everywhere", v1alpha1.GoopSpec{Cmd: greets})
		w.complete(goop, len(nodes))
		spread := w.spread(goop)
		w.expectEven(spread, nodes)
		Expect(spread).To(HaveLen(len(nodes)))
		Expect(w.daemonSets(goop)).To(HaveLen(1))
		w.expectOnce(pods, goop)
	})
	isSpread("smaller than", func(n int) int { return n - 1 })
	isSpread("equal to", func(n int) int { return n })
	isSpread("larger than", func(n int) int { return 2*n + 1 })

	onContainers("has output from every node", func(w *testEnv) {
		nodes := w.nodes()
		Expect(nodes).To(HaveLen(3))
		goop := w.create("output", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(6))})
		w.complete(goop, 6)
		outputs := w.outputs(goop)
		Expect(outputs).To(HaveLen(6))
		for _, node := range nodes {
			for round := range 2 {
				Expect(outputs).To(HaveKeyWithValue(fmt.Sprintf("%s/%d", node, round), fmt.Sprintf("hello from %s, round %d\n", node, round)))
			}
		}
	})
	onContainers("gets its arguments unchanged, and its variables", func(w *testEnv) {
		arguments := []string{
			"", " ", "two words", "  kept  ", "tab\there", "line\nbreak\n", `"double"`, `'single'`, "`backtick`", `back\slash\n`,
			"$HOME", "${HOME}", "$(NODE_NAME)", "$$", "$$$", "$$(NODE_NAME)", "$", "*", "~", "#", ";", "&&", "|", "--", "-n4", "--retries", "=",
			"é ü 日本語 \U0001F42E", "\x01\x1f\x7f", strings.Repeat("long ", 200),
		}
		want := strings.Builder{}
		for _, argument := range arguments {
			fmt.Fprintf(&want, "<%s>\n", argument)
		}
		fmt.Fprintf(&want, "[%d] arguments-kept and kept on arguments\n", len(arguments))
		node := w.nodes()[0]
		goop := w.create("arguments", v1alpha1.GoopSpec{
			Cmd:          append(sh(`for a; do printf '<%s>\n' "$a"; done; echo "[$#] $GOOP_NAME-$WORD and $OTHER"`), append([]string{"sh"}, arguments...)...),
			NodeSelector: map[string]string{corev1.LabelHostname: node},
			Env:          []v1alpha1.EnvVar{{Name: "WORD", Value: "kept"}, {Name: "OTHER", Value: "$(WORD) on $(GOOP_NAME)"}},
		})
		w.complete(goop, 1)
		Expect(w.outputs(goop)).To(Equal(map[string]string{node + "/0": want.String()}))
	})
	onContainers("runs under the restricted Pod Security level, not as root", func(w *testEnv) {
		goop := w.create("restricted", v1alpha1.GoopSpec{Cmd: sh("id -u; touch /goop/mine")})
		w.complete(goop, len(w.nodes()))
		for place, output := range w.outputs(goop) {
			Expect(output).To(Equal("65532\n"), place)
		}
	}, e2e.Restricted)
})

// isSpread declares a spec about a number of workers that depends on the number of nodes.
func isSpread(how string, count func(nodes int) int) {
	spec("with a jobCount "+how+" the number of nodes is spread as evenly as possible, each worker once", func(w *testEnv) {
		pods := w.watch()
		nodes := w.nodes()
		workers := count(len(nodes))
		goop := w.create("counted", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(workers))})
		w.complete(goop, workers)
		w.expectEven(w.spread(goop), nodes)
		w.expectOnce(pods, goop)

		// The number of rounds is the number of workers on the fullest node: ⌈J/n⌉.
		rounds := (workers + len(nodes) - 1) / len(nodes)
		daemonSets := w.daemonSets(goop)
		Expect(daemonSets).To(HaveLen(rounds))
		for _, daemonSet := range daemonSets {
			Expect(daemonSet.Spec.UpdateStrategy.Type).To(BeEquivalentTo("OnDelete"))
		}
		// The record has as much as the status, also after the pods were deleted.
		record := w.recorded(goop)
		Expect(record.Succeeded).To(BeEquivalentTo(workers))
		for place := range record.Finished {
			Expect(slices.Contains(nodes, place.Node)).To(BeTrue(), "%v", place)
			Expect(place.Round).To(BeNumerically("<", rounds))
		}
	})
}
