package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/binaries"
)

var _ = Describe("kubectl", func() {
	spec("get prints what matters of Fluxes and FluxSetups", func(w *testEnv) {
		running := w.create("running", v1alpha1.FluxSpec{Command: sh("sleep 600"), Size: 2})
		good := w.create("good", v1alpha1.FluxSpec{Command: sh("exit 0"), Size: 2})
		bad := w.create("bad", v1alpha1.FluxSpec{Command: sh("exit 3"), Size: 2})
		w.running(running)
		until(w, running, func(g Gomega, flux *v1alpha1.Flux) { g.Expect(flux.Status.ReadyRanks).To(BeEquivalentTo(2)) })
		w.complete(good)
		w.begin(bad)
		w.endLeader(bad, 3, "")
		w.failed(bad, v1alpha1.ReasonCommandFailed)

		fluxes := table(w.kubectl("get", "flux"))
		Expect(fluxes["running"]).To(And(
			HaveKeyWithValue("SIZE", "2"), HaveKeyWithValue("READY", "2"), HaveKeyWithValue("REASON", "QuorumReached"),
			HaveKeyWithValue("COMPLETE", ""), HaveKeyWithValue("FAILED", ""), HaveKeyWithValue("EXIT", ""), HaveKey("RESTARTS"), HaveKey("AGE")))
		Expect(fluxes["good"]).To(And(
			HaveKeyWithValue("REASON", "Finished"), HaveKeyWithValue("COMPLETE", "True"), HaveKeyWithValue("FAILED", ""), HaveKeyWithValue("EXIT", "0")))
		Expect(fluxes["bad"]).To(And(
			HaveKeyWithValue("REASON", "Finished"), HaveKeyWithValue("COMPLETE", ""), HaveKeyWithValue("FAILED", "CommandFailed"), HaveKeyWithValue("EXIT", "3")))

		setups := table(w.kubectl("get", "fluxsetup"))
		Expect(setups["running"]).To(And(
			HaveKeyWithValue("ATTEMPT", "1"), HaveKeyWithValue("SIZE", "2"), HaveKeyWithValue("READY", "2"), HaveKeyWithValue("ACCEPTED", "True"),
			HaveKeyWithValue("REASON", "QuorumReached"), HaveKeyWithValue("LEADER", w.leader(running).Name), HaveKey("AGE")))

		both := w.kubectl("get", "flux,fluxsetup")
		for line := range strings.Lines(both) {
			Expect(len(line)).To(BeNumerically("<", 120), "fits a terminal")
		}
	})
})

// table parses the output of kubectl: the cells of each row, by column, by the row's name. Cells may be empty: a cell
// begins where the header of its column begins.
func table(text string) map[string]map[string]string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	headers := regexp.MustCompile(`\S+`).FindAllStringIndex(lines[0], -1)
	rows := map[string]map[string]string{}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, header := range headers {
			from, to := min(header[0], len(line)), len(line)
			if i+1 < len(headers) {
				to = min(headers[i+1][0], len(line))
			}
			row[lines[0][header[0]:header[1]]] = strings.TrimSpace(line[from:to])
		}
		rows[row["NAME"]] = row
	}
	return rows
}

// kubectl runs kubectl in the spec's namespace, and returns its output.
func (w *testEnv) kubectl(arguments ...string) string {
	GinkgoHelper()
	dir, err := binaries.Ensure(w.ctx, GinkgoWriter, "kubectl")
	Expect(err).NotTo(HaveOccurred())
	arguments = append(arguments, "--kubeconfig", env.Cluster.Kubeconfig(), "--context", env.Cluster.Context(), "--namespace", w.namespace)
	output, err := exec.CommandContext(w.ctx, filepath.Join(dir, "kubectl"), arguments...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	return string(output)
}
