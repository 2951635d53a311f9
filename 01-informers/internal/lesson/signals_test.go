package lesson_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

// This test binary is also the programs that it runs as processes of their own, told by these variables.
const (
	programVariable    = "TEST_LESSON"
	kubeconfigVariable = "TEST_LESSON_KUBECONFIG"
)

func TestMain(m *testing.M) {
	if program := os.Getenv(programVariable); program != "" {
		os.Args = []string{"demo", "--kubeconfig", os.Getenv(kubeconfigVariable)}
		run := map[string]func(context.Context, *lesson.World) error{"stubborn": stubborn, "talkative": talkative}
		lesson.Main(lesson.Lesson{Name: "demo", Run: run[program]})
	}
	testserver.Main(m)
}

// process starts this binary as a program.
func process(t *testing.T, program string) (*exec.Cmd, *bufio.Reader, io.Closer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	process := exec.CommandContext(ctx, os.Args[0])
	process.Env = append(os.Environ(), programVariable+"="+program,
		kubeconfigVariable+"="+testserver.Kubeconfig(t, testserver.Config(t)))
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return process, bufio.NewReader(out), out
}

// Not parallel: the signal reaches every run of this process.
func TestCtrlCDeletesTheNamespaceToo(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			g := NewWithT(t)
			var namespace string
			program := lesson.Lesson{Name: "demo", Run: func(ctx context.Context, world *lesson.World) error {
				namespace = world.Namespace
				g.Expect(syscall.Kill(os.Getpid(), signal)).To(Succeed())
				<-ctx.Done()
				return ctx.Err()
			}}
			got := runLesson(program, "--kubeconfig", testserver.Kubeconfig(t, testserver.Config(t)))
			g.Expect(got).To(Equal(ran{0, "", "demo: interrupted; deleting the namespace " + namespace + "\n"}))
			expectDeleted(t, namespace)
		})
	}
}

// A second Ctrl-C does not wait for anything.
func TestSecondCtrlCEndsItAtOnce(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	program, out, _ := process(t, "stubborn")
	g.Expect(program.Start()).To(Succeed())
	for _, want := range []string{"running\n", "told to end, and going on\n"} {
		g.Expect(out.ReadString('\n')).To(Equal(want))
		g.Expect(program.Process.Signal(os.Interrupt)).To(Succeed())
	}
	g.Expect(program.Wait()).To(MatchError("signal: interrupt"))
}

// stubborn does not heed its context.
func stubborn(ctx context.Context, world *lesson.World) error {
	world.Printf("running\n")
	<-ctx.Done()
	world.Printf("told to end, and going on\n")
	select {}
}

// As in "go run ./listwatch | head -1".
func TestClosedPipeDeletesTheNamespaceToo(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	program, out, reader := process(t, "talkative")
	in, err := program.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(program.Start()).To(Succeed())
	namespace, err := out.ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(reader.Close()).To(Succeed())
	g.Expect(in.Close()).To(Succeed())
	g.Expect(program.Wait()).To(Succeed())
	expectDeleted(t, strings.TrimSpace(namespace))
}

// talkative prints on after its reader is gone, which it is when standard input ends.
func talkative(_ context.Context, world *lesson.World) error {
	world.Printf("%s\n", world.Namespace)
	_, err := io.Copy(io.Discard, os.Stdin)
	for range 100 {
		world.Printf("and another thing\n")
	}
	return err
}
