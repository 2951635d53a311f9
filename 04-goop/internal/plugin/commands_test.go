package plugin

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// goop adds an existing Goop with a command.
func (f *fake) goop(name string, cmd ...string) string {
	f.lock.Lock()
	defer f.lock.Unlock()
	goop := &v1alpha1.Goop{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "test", UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.Now()},
		Spec:       v1alpha1.GoopSpec{Cmd: cmd},
	}
	f.goops[name] = goop
	f.change("goops", "ADDED", goop)
	return name
}

func TestLs(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	r := f.run("ls")
	g.Expect(r).To(Equal(ran{0, "", "goop: there are no Goops in test\n"}))
	f.goop("fresh", "sleep", "")
	f.end(f.goop("done", "sh", "-c", "echo a; echo b; echo something quite long"), 3)
	f.end(f.goop("lost", "false"), 1, v1alpha1.Failure{Node: "n1", ExitCode: 9})
	f.waits(f.goop("stuck", "true"), v1alpha1.ReasonNoEligibleNodes, "none")
	r = f.run("ls")
	g.Expect(r.code).To(Equal(0), r.err)
	lines := strings.Split(r.out, "\n")
	g.Expect(lines[0]).To(MatchRegexp(`^NAME +STATE +DONE +RUNNING +FAILED +EXIT +AGE +COMMAND$`))
	g.Expect(lines[1]).To(MatchRegexp(`^done +Complete +3/3 +0 +0 +0 +\d+s +sh -c "echo a; echo b; echo something q…$`))
	g.Expect(lines[2]).To(MatchRegexp(`^fresh +New +0/0 +0 +0 +\d+s +sleep ""$`))
	g.Expect(lines[3]).To(MatchRegexp(`^lost +Failed +2/2 +0 +1 +9 +\d+s +false$`))
	g.Expect(lines[4]).To(MatchRegexp(`^stuck +NoEligibleNodes +0/0 +0 +0 +\d+s +true$`))
	g.Expect(f.run("ls", "-o", "name").out).To(HavePrefix("goop.goop.example.com/done\ngoop.goop.example.com/fresh\n"))
	g.Expect(f.run("ls", "-o", "json").out).To(And(ContainSubstring(`"kind": "GoopList"`), ContainSubstring(`"name": "stuck"`)))
	g.Expect(f.run("ls", "-o", "yaml").out).To(ContainSubstring("kind: GoopList"))
}

func TestLogs(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.goop("hello", "true")
	f.ends("hello", "n1", 0, "one\n", 0)
	f.worker("hello", "n2", 0, text("so far"))
	r := f.run("logs", "hello")
	g.Expect(r.code).To(Equal(0), r.err)
	g.Expect(strings.Split(r.out, "\n")).To(ConsistOf("n1: one", "n2: so far", ""))
	g.Expect(r.err).To(BeEmpty())
}

func TestLogsWhosePodsAreGone(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.end(f.goop("hello", "true"), 2, v1alpha1.Failure{Node: "n3", ExitCode: 1, Output: "oh no"})
	r := f.run("logs", "hello")
	g.Expect(r.code).To(Equal(0))
	g.Expect(r.out).To(Equal("n3: oh no\n"))
	g.Expect(r.err).To(ContainSubstring("goop: n3: its output is not available: no pod of it was found; shown is the end of it, at most 2 KiB, from the record\n"))
	g.Expect(r.err).To(ContainSubstring("goop: the output of 2 of 3 workers is not available: no pods of them were found\n"))
}

func TestLogsFollow(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.goop("hello", "true")
	p := f.start("logs", "hello", "--follow")
	f.ends("hello", "n1", 0, "one\n", 0)
	eventually(t, "output", func() bool { return p.out.String() == "n1: one\n" })
	f.ends("hello", "n2", 0, "two\n", 3)
	f.end("hello", 1, v1alpha1.Failure{Node: "n2", ExitCode: 3})
	g.Expect(p.end()).To(Equal(0))
	g.Expect(p.out.String()).To(Equal("n1: one\nn2: two\n"))
	g.Expect(f.has("hello")).To(BeTrue())
}

func TestWaitEndsAsRun(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.end(f.goop("failed", "true"), 1, v1alpha1.Failure{Node: "n1", ExitCode: 42})
	f.end(f.goop("done", "true"), 1)
	f.goop("running", "true")
	f.waits(f.goop("rejected", "true"), v1alpha1.ReasonHostAccessNotAllowed, "no")
	f.update(f.goop("late", "true"), func(goop *v1alpha1.Goop) {
		goop.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDeadlineExceeded, Message: "late",
		}}
	})
	g.Expect(f.run("wait", "done")).To(Equal(ran{0, "", ""}))
	g.Expect(f.run("wait", "failed")).To(Equal(ran{42, "", "goop: WorkersFailed: 1 of 2 workers failed; exit code 42: n1\n"}))
	g.Expect(f.run("wait", "rejected")).To(Equal(ran{1, "", "goop: rejected: no\n"}))
	g.Expect(f.run("wait", "late")).To(Equal(ran{124, "", "goop: DeadlineExceeded: late\n"}))
	g.Expect(f.run("wait", "running", "--timeout", "3s")).
		To(Equal(ran{124, "", "goop: timed out after 3s; the Goop running continues\n"}))
	g.Expect(f.run("wait", "absent")).To(Equal(ran{1, "", "error: goops not found\n"}))
	g.Expect(f.run("wait", "failed", "-o", "json").out).To(MatchJSON(`{"type":"summary","goop":"failed","namespace":"test",
		"reason":"WorkersFailed","exitCode":42,"desired":2,"succeeded":1,"failed":1}`))
	g.Expect(f.count("list pods")+f.count("watch pods")).To(Equal(0), "who waits needs no pods")
	g.Expect(f.has("running")).To(BeTrue())
}

func TestCancel(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.goop("a", "true")
	f.update(f.goop("b", "true"), func(goop *v1alpha1.Goop) { goop.Finalizers = []string{v1alpha1.CleanupFinalizer} })
	r := f.run("cancel", "a", "absent", "b")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.out).To(Equal("goop.goop.example.com/a deleted\ngoop.goop.example.com/b being deleted, after its cleanup\n"))
	g.Expect(r.err).To(Equal("error: goops not found\n"))
	g.Expect(f.all()).To(BeEmpty())
}

func TestUsage(t *testing.T) {
	f := newFake(t)
	for want, args := range map[string][]string{
		"--nodes: must be KEY=VALUE":      {"run", "--nodes", "a in (b,c)", "--", "true"},
		"--count: must not be negative":   {"run", "--count", "-1", "--", "true"},
		"--timeout: must not be negative": {"run", "--timeout", "-1s", "--", "true"},
		"--ttl: must not be negative":     {"run", "--ttl", "-1s", "--", "true"},
		"--retries: must not be negative": {"run", "--retries", "-1", "--", "true"},
		"--host-root: must be ro or rw":   {"run", "--host-root", "yes", "--", "true"},
		"exclude each other":              {"run", "--group", "-o", "json", "--", "true"},
		"the only format is json":         {"logs", "x", "-o", "yaml"},
		"formats are json, yaml and name": {"ls", "-o", "wide"},
		"requires at least 1 arg":         {"run"},
		"accepts 1 arg":                   {"wait"},
		"unknown flag: --frob":            {"cancel", "--frob", "x"},
		`unknown command "frob"`:          {"frob"},
	} {
		t.Run(want, func(t *testing.T) {
			g := NewWithT(t)
			r := f.run(args...)
			g.Expect(r.code).To(Equal(2))
			g.Expect(r.out).To(BeEmpty())
			g.Expect(r.err).To(And(HavePrefix("error: "), ContainSubstring(want), HaveSuffix("See 'kubectl goop --help'.\n")))
		})
	}
	NewWithT(t).Expect(f.changes()).To(BeZero(), "nothing was created")
}

// Each example of the help is a valid command line.
func TestHelpHasExamplesThatParse(t *testing.T) {
	g := NewWithT(t)
	a := &app{flags: newFlags(), streams: streamsTo(&buffer{})}
	root := a.command()
	for _, command := range root.Commands() {
		g.Expect(command.Example).NotTo(BeEmpty(), command.Name())
		for line := range strings.Lines(command.Example) {
			words := strings.Fields(line)
			if len(words) == 0 || words[0] == "#" {
				continue
			}
			g.Expect(words[:3]).To(Equal([]string{"kubectl", "goop", command.Name()}))
			found, rest, err := root.Find(words[2:])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.ParseFlags(rest)).To(Succeed(), line)
		}
	}
	r := runProgram(t, "/nowhere", "run", "--help")
	g.Expect(r.code).To(Equal(0))
	g.Expect(r.out).To(And(ContainSubstring("kubectl goop run [flags] -- COMMAND"), ContainSubstring("124  --timeout was exceeded"),
		ContainSubstring("--context string"), ContainSubstring("--as string")))
}

func TestCompletion(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.goop("one", "true")
	f.end(f.goop("two", "uname", "-a"), 1)
	complete := func(args ...string) string {
		return f.run(append([]string{"__complete"}, args...)...).out
	}
	g.Expect(complete("logs", "")).To(Equal("one\tNew: true\ntwo\tComplete: uname -a\n:4\n"))
	g.Expect(complete("logs", "one", "")).To(Equal(":4\n"))
	g.Expect(complete("cancel", "one", "")).To(Equal("two\tComplete: uname -a\n:4\n"))
	g.Expect(complete("run", "--host-root", "")).To(Equal("ro\nrw\n:4\n"))
	g.Expect(complete("run", "--context", "")).To(Equal("fake\nother\n:4\n"))
}

// kubectl finds the plugin and its completion program on the PATH.
func TestAsAPluginOfKubectl(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl on the PATH")
	}
	g, f := NewWithT(t), newFake(t)
	f.goop("one", "true")
	dir := t.TempDir()
	program, err := filepath.Abs(os.Args[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.Symlink(program, filepath.Join(dir, "kubectl-goop"))).To(Succeed())
	script, err := filepath.Abs(filepath.Join("..", "..", "cmd", "kubectl-goop", "kubectl_complete-goop"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.Symlink(script, filepath.Join(dir, "kubectl_complete-goop"))).To(Succeed())
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), kubectl, args...)
		cmd.Env = append(os.Environ(), asProgram+"=1", "PATH="+dir+":"+os.Getenv("PATH"), "KUBECONFIG="+f.kubeconfig)
		out, err := cmd.Output()
		g.Expect(err).NotTo(HaveOccurred())
		return string(out)
	}
	g.Expect(run("goop", "ls", "-o", "name")).To(Equal("goop.goop.example.com/one\n"))
	g.Expect(run("__complete", "goop", "logs", "")).To(HavePrefix("one\tNew: true\n"))
	g.Expect(worker.MaxOutput).To(Equal(2048), "as the help says")
}
