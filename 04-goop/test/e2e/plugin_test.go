package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
	"example.com/workbook/shared/binaries"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
	"example.com/workbook/shared/image"
)

// buildPlugin builds kubectl-goop for this machine.
func buildPlugin(ctx context.Context, env *e2e.Env) (string, error) {
	return image.Binary(ctx, env.Stage.Dir, "kubectl-goop", runtime.GOOS, runtime.GOARCH)
}

// ofNodes exits with the last digit of its node's name, if there is one: nodes are called worker and worker2.
var ofNodes = does(`case $NODE_NAME in *2) exit 2;; esac`, func(pod *corev1.Pod) *worker.Record {
	if strings.HasSuffix(pod.Spec.NodeName, "2") {
		return recordOf(pod, 2, "")
	}
	return recordOf(pod, 0, "")
})

var _ = Describe("kubectl goop", func() {
	spec("run exits with 0 if all workers do, and deletes the Goop", func(w *testEnv) {
		ran := w.goop("run", "--tolerate-all", "--", greets[0], greets[1], greets[2])
		Expect(ran.code).To(BeZero(), "%s", ran.stderr)
		w.leaves()
		Expect(ran.stdout).NotTo(ContainSubstring("\x1b"), "no colours, because there is no terminal")
		Expect(ran.stderr).NotTo(ContainSubstring("\r"), "no progress line either")
	})
	spec("run exits with the highest exit code of any worker, and lists the nodes", func(w *testEnv) {
		ran := w.goop("run", "--tolerate-all", "--", ofNodes[0], ofNodes[1], ofNodes[2])
		Expect(ran.code).To(Equal(2), "%s", ran.stderr)
		Expect(ran.stderr).To(And(ContainSubstring("exit code 2"), ContainSubstring("worker2")))
		w.leaves()
	})
	spec("run exits with 124 on time-out, and cancels the work", func(w *testEnv) {
		ran := w.goop("run", "--timeout", "5s", "--", endless[0], endless[1], endless[2])
		Expect(ran.code).To(Equal(124), "%s", ran.stderr)
		Expect(ran.stderr).To(ContainSubstring("timed out after 5s"))
		w.leaves()
	})
	spec("run cancels the work on Ctrl-C, reports that, and exits with 130", func(w *testEnv) {
		process := w.begin("run", "--", endless[0], endless[1], endless[2])
		Eventually(w.ctx, func(g Gomega) {
			goops := w.goops()
			g.Expect(goops).To(HaveLen(1))
			g.Expect(goops[0].Status.Running).To(BeNumerically(">", 0))
		}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed())
		Expect(process.cmd.Process.Signal(syscall.SIGINT)).To(Succeed())
		ran := process.wait(w)
		Expect(ran.code).To(Equal(130), "%s", ran.stderr)
		Expect(ran.stderr).To(And(ContainSubstring("interrupted"), ContainSubstring("is deleted, which ends its workers")))
		w.leaves()
	})
	spec("run reports at once that it is rejected, or that there is no eligible node", func(w *testEnv) {
		ran := w.goop("run", "--host-root", "ro", "--", "cat", "/host/etc/hostname")
		Expect(ran.code).To(Equal(1))
		Expect(ran.stderr).To(ContainSubstring(hostFlag))
		ran = w.goop("run", "--nodes", "no-such=node", "--timeout", "15s", "--", "true")
		Expect(ran.code).To(Equal(124))
		Expect(ran.stderr).To(ContainSubstring("spec.nodeSelector"))
		ran = w.goop("run")
		Expect(ran.code).To(Equal(2))
	})
	spec("ls, wait and cancel do what they say", func(w *testEnv) {
		w.create("done", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(2))})
		w.create("bad", v1alpha1.GoopSpec{Cmd: fails, JobCount: new(int32(1)), Retries: new(int32(0))})
		running := w.create("running", v1alpha1.GoopSpec{Cmd: endless, JobCount: new(int32(1))})
		Expect(w.goop("wait", "done").code).To(BeZero())
		Expect(w.goop("wait", "bad").code).To(Equal(3))
		Expect(w.goop("wait", "running", "--timeout", "1s").code).To(Equal(124))
		Expect(w.goop("wait", "missing").code).To(Equal(1))

		listed := w.goop("ls")
		Expect(listed.stdout).To(And(ContainSubstring("done"), ContainSubstring("bad"), ContainSubstring("running")))
		Expect(w.goop("ls", "-o", "name").stdout).To(ContainSubstring("goop.goop.example.com/done\n"))

		cancelled := w.goop("cancel", "running")
		Expect(cancelled.code).To(BeZero())
		Expect(cancelled.stdout).To(Equal("goop.goop.example.com/running deleted\n"))
		w.gone(running)
	})
	spec("run --keep keeps the Goop", func(w *testEnv) {
		ran := w.goop("run", "--keep", "--count", "2", "--", greets[0], greets[1], greets[2])
		Expect(ran.code).To(BeZero(), "%s", ran.stderr)
		goops := w.goops()
		Expect(goops).To(HaveLen(1))
		Expect(goops[0].Name).To(HavePrefix("run-"))
		w.complete(&goops[0], 2)
	})
	spec("is a plugin of kubectl, with all the usual flags", func(w *testEnv) {
		w.create("listed", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(1))})
		dir, err := binaries.Ensure(w.ctx, GinkgoWriter, "kubectl")
		Expect(err).NotTo(HaveOccurred())
		cmd := exec.CommandContext(w.ctx, filepath.Join(dir, "kubectl"), "goop", "ls", "--context", env.Cluster.Context(), "-n", w.namespace)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+env.Cluster.Kubeconfig(), "PATH="+filepath.Dir(env.Prepared)+string(os.PathListSeparator)+os.Getenv("PATH"))
		output, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", output)
		Expect(string(output)).To(ContainSubstring("listed"))
		help := w.goop("run", "--help")
		for _, flag := range []string{"--as", "--context", "--kubeconfig", "--namespace", "--request-timeout", "Examples:"} {
			Expect(help.stdout).To(ContainSubstring(flag))
		}
	})

	onContainers("run shows each worker's output with its node's name in front", func(w *testEnv) {
		ran := w.goop("run", "--tolerate-all", "--", "sh", "-c", "echo to stdout; echo to stderr >&2")
		Expect(ran.code).To(BeZero(), "%s", ran.stderr)
		for _, node := range w.nodes() {
			for _, line := range []string{"to stdout", "to stderr"} {
				Expect(ran.stdout).To(ContainSubstring(node + ": " + line + "\n"))
			}
		}
		// An incomplete line has its own command, because in the log the output of the other stream would continue the line.
		several := w.goop("run", "--count", "4", "--", "sh", "-c", "printf $GOOP_ROUND")
		Expect(several.code).To(BeZero(), "%s", several.stderr)
		Expect(strings.Count(several.stdout, "\n")).To(Equal(4), "%s", several.stdout)
		for line := range strings.Lines(several.stdout) {
			place, round, _ := strings.Cut(strings.TrimSpace(line), ": ")
			Expect(place).To(HaveSuffix("/" + round))
		}
		w.leaves()
	})
	onContainers("run --group shows identical outputs once, with the nodes that wrote them", func(w *testEnv) {
		ran := w.goop("run", "--tolerate-all", "--group", "--", "sh", "-c", "case $NODE_NAME in *control-plane) echo head;; *) echo limb;; esac")
		Expect(ran.code).To(BeZero(), "%s", ran.stderr)
		name := env.Cluster.Name()
		rule := strings.Repeat("-", 15)
		Expect(ran.stdout).To(Equal(fmt.Sprintf("%[1]s\n%[2]s-worker,%[2]s-worker2 (2)\n%[1]s\nlimb\n%[1]s\n%[2]s-control-plane\n%[1]s\nhead\n", rule, name)))
	})
	onContainers("run -o json has an object for each worker, and a summary", func(w *testEnv) {
		ran := w.goop("run", "--tolerate-all", "-o", "json", "--", "sh", "-c", `echo "I am $NODE_NAME"; test "$NODE_NAME" != "`+w.nodes()[0]+`" || exit 4`)
		Expect(ran.code).To(Equal(4), "%s", ran.stderr)
		var lines []map[string]any
		for decoder := json.NewDecoder(strings.NewReader(ran.stdout)); decoder.More(); {
			var line map[string]any
			Expect(decoder.Decode(&line)).To(Succeed())
			lines = append(lines, line)
		}
		nodes := w.nodes()
		Expect(lines).To(HaveLen(len(nodes) + 1))
		seen := map[any]any{}
		for _, line := range lines[:len(nodes)] {
			Expect(line).To(HaveKeyWithValue("output", fmt.Sprintf("I am %s\n", line["node"])))
			seen[line["node"]] = line["exitCode"]
		}
		Expect(seen).To(HaveLen(len(nodes)))
		Expect(seen).To(HaveKeyWithValue(nodes[0], BeEquivalentTo(4)))
		Expect(lines[len(nodes)]).To(And(
			HaveKeyWithValue("type", "summary"), HaveKeyWithValue("reason", v1alpha1.ReasonWorkersFailed),
			HaveKeyWithValue("exitCode", BeEquivalentTo(4)), HaveKeyWithValue("failed", BeEquivalentTo(1))))
	})
	onContainers("logs shows the output of a Goop's workers, and follows those that are still running", func(w *testEnv) {
		goop := w.create("chatty", v1alpha1.GoopSpec{Cmd: sh("echo first; " + untilLet + "; echo last"), JobCount: new(int32(1))})
		w.running(goop, 1)
		Eventually(func() string { return w.goop("logs", "chatty").stdout }).WithTimeout(expect.Soon).Should(HaveSuffix(": first\n"))
		following := w.begin("logs", "chatty", "--follow")
		Eventually(following.stdout).WithTimeout(patience).Should(gbytes.Say(": first\n"))
		Expect(w.let(&w.pods(goop)[0])).To(Succeed())
		followed := following.wait(w)
		Expect(followed.code).To(BeZero(), "%s", followed.stderr)
		Expect(followed.stdout).To(And(ContainSubstring(": first\n"), ContainSubstring(": last\n")))
	})
})

// goops returns the Goops of the namespace.
func (w *testEnv) goops() []v1alpha1.Goop {
	GinkgoHelper()
	var list v1alpha1.GoopList
	Expect(env.Client.List(w.ctx, &list, client.InNamespace(w.namespace))).To(Succeed())
	return list.Items
}

// ran is the result of a command.
type ran struct {
	stdout, stderr string
	code           int
}

// process is a running command.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *gbytes.Buffer
}

// goop runs kubectl-goop in the spec's namespace to its end.
func (w *testEnv) goop(arguments ...string) ran {
	GinkgoHelper()
	return w.begin(arguments...).wait(w)
}

// begin starts kubectl-goop in the spec's namespace.
func (w *testEnv) begin(arguments ...string) *process {
	GinkgoHelper()
	usual := []string{arguments[0], "--kubeconfig", env.Cluster.Kubeconfig(), "--context", env.Cluster.Context(), "--namespace", w.namespace}
	p := &process{cmd: exec.CommandContext(w.ctx, env.Prepared, append(usual, arguments[1:]...)...), stdout: gbytes.NewBuffer(), stderr: gbytes.NewBuffer()}
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	Expect(p.cmd.Start()).To(Succeed())
	return p
}

// wait waits until the command has ended, with any exit code.
func (p *process) wait(w *testEnv) ran {
	GinkgoHelper()
	ended := make(chan struct{})
	go func() {
		_ = p.cmd.Wait() // its exit code is read below
		close(ended)
	}()
	Eventually(w.ctx, ended).WithTimeout(patience).Should(BeClosed(), "%s does not end", p.cmd)
	return ran{stdout: string(p.stdout.Contents()), stderr: string(p.stderr.Contents()), code: p.cmd.ProcessState.ExitCode()}
}

var _ = Describe("kubectl", func() {
	spec("get prints a summary of Goops, and wait waits for the end", func(w *testEnv) {
		running := w.create("running", v1alpha1.GoopSpec{Cmd: endless, JobCount: new(int32(2))})
		good := w.create("good", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(2))})
		bad := w.create("bad", v1alpha1.GoopSpec{Cmd: fails, JobCount: new(int32(2)), Retries: new(int32(0))})
		Expect(w.kubectl("wait", "--for=condition=Complete", "goop/good", "--timeout=150s")).To(ContainSubstring("condition met"))
		Expect(w.kubectl("wait", "--for=condition=Failed", "goop/bad", "--timeout=150s")).To(ContainSubstring("condition met"))
		w.running(running, 2)
		w.has(good, v1alpha1.ConditionComplete, metav1.ConditionTrue, "")
		w.failed(bad, v1alpha1.ReasonWorkersFailed)
		// After the last pod has paused nothing changes.
		for _, goop := range []*v1alpha1.Goop{good, bad} {
			until(w, goop, func(g Gomega, live *v1alpha1.Goop) { g.Expect(live.Status.Running).To(BeZero()) })
		}
		printed := w.kubectl("get", "goop")
		rows := map[string][]string{}
		for line := range strings.Lines(printed) {
			Expect(len(line)).To(BeNumerically("<", 120), "fits a terminal")
			fields := strings.Fields(line)
			rows[fields[0]] = fields[1 : len(fields)-1]
		}
		Expect(rows["NAME"]).To(Equal([]string{"DESIRED", "RUNNING", "SUCCEEDED", "FAILED", "REASON", "COMPLETE", "EXIT"}))
		Expect(rows["running"]).To(Equal([]string{"2", "2", "0", "0", "Working"}))
		Expect(rows["good"]).To(Equal([]string{"2", "0", "2", "0", "Finished", "True", "0"}))
		Expect(rows["bad"]).To(Equal([]string{"2", "0", "0", "2", "Finished", "3"}))
	})
})

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
