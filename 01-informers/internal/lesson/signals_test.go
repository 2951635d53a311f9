package lesson_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

// The tests run this binary again as a program of its own. These variables choose which, and its cluster.
const (
	programVariable    = "TEST_LESSON"
	kubeconfigVariable = "TEST_LESSON_KUBECONFIG"
)

func TestMain(m *testing.M) {
	if program := os.Getenv(programVariable); program != "" {
		os.Args = []string{"demo", "--kubeconfig", os.Getenv(kubeconfigVariable)}
		run := map[string]func(context.Context, *lesson.Env){"never ends": neverEnd, "keeps printing": keepPrinting}
		lesson.Main(lesson.Lesson{Name: "demo", Run: run[program]})
	}
	testserver.Main(m)
}

// process returns this binary as a program, not yet started.
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

// Each signal is sent once while the lesson runs, and SIGHUP, which a closed terminal sends, once more after
// that, because some shells do. Not parallel: a signal reaches every lesson in this process.
func TestSignalsDeleteTheNamespace(t *testing.T) {
	for _, one := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(one.String(), func(t *testing.T) {
			if signal.Ignored(one) {
				t.Skip("nohup")
			}
			g := NewWithT(t)
			var namespace string
			program := lesson.Lesson{Name: "demo", Run: func(ctx context.Context, env *lesson.Env) {
				namespace = env.Namespace
				g.Expect(syscall.Kill(os.Getpid(), one)).To(Succeed())
				<-ctx.Done()
				if one == syscall.SIGHUP {
					g.Expect(syscall.Kill(os.Getpid(), one)).To(Succeed())
				}
				lesson.Check(ctx.Err())
			}}
			got := runLesson(program, "--kubeconfig", testserver.Kubeconfig(t, testserver.Config(t)))
			g.Expect(got).To(Equal(ran{0, "", "demo: interrupted; deleting the namespace " + namespace + "\n"}))
			expectDeleted(t, namespace)
		})
	}
}

// The API server may have created the namespace when Ctrl-C arrives, with the response not yet received.
func TestCtrlCWhileTheNamespaceIsCreated(t *testing.T) {
	g := NewWithT(t)
	deleted := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodPost:
			g.Expect(syscall.Kill(os.Getpid(), syscall.SIGINT)).To(Succeed())
			select {
			case <-r.Context().Done(): // the client has closed the connection
			case <-time.After(time.Second): // no limit: the response comes this much after Ctrl-C
			}
		case http.MethodDelete:
			deleted <- path.Base(r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "demo-created"}}`)
	}))
	defer server.Close()
	program := lesson.Lesson{Name: "demo", Run: func(ctx context.Context, _ *lesson.Env) { lesson.Check(ctx.Err()) }}
	got := runLesson(program, "--kubeconfig", access(t, server.URL))
	g.Expect(deleted).To(Receive(Equal("demo-created")))
	g.Expect(got).To(Equal(ran{0, "", "demo: interrupted; deleting the namespace demo-created\n"}))
}

func TestASecondCtrlCEndsTheProcessAtOnce(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	program, out, _ := process(t, "never ends")
	g.Expect(program.Start()).To(Succeed())
	for _, want := range []string{"running\n", "cancelled\n"} {
		g.Expect(out.ReadString('\n')).To(Equal(want))
		g.Expect(program.Process.Signal(os.Interrupt)).To(Succeed())
	}
	g.Expect(program.Wait()).To(MatchError("signal: interrupt"))
}

// neverEnd does not return when its context is cancelled.
func neverEnd(ctx context.Context, env *lesson.Env) {
	env.Printf("running\n")
	<-ctx.Done()
	env.Printf("cancelled\n")
	select {}
}

// As in "go run ./listwatch | head -1".
func TestAClosedPipeDeletesTheNamespace(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	program, out, reader := process(t, "keeps printing")
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

// keepPrinting prints after the test has closed the pipe, which it reports by closing standard input.
func keepPrinting(_ context.Context, env *lesson.Env) {
	env.Printf("%s\n", env.Namespace)
	lesson.Must(io.Copy(io.Discard, os.Stdin))
	for range 100 {
		env.Printf("another line\n")
	}
}
