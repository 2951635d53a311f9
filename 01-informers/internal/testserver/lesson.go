package testserver

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/workbook/01-informers/internal/lesson"
)

// lessonTimeout bounds the run of a lesson in a test. A lesson takes about 10 s, and more when several test
// packages run at once on two cores.
const lessonTimeout = 90 * time.Second

// Lesson runs a lesson in a namespace of its own, and returns what it printed. An offline lesson gets neither a namespace nor a
// server.
func Lesson(tb testing.TB, program lesson.Lesson) (string, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), lessonTimeout)
	defer cancel()
	var out bytes.Buffer
	env := &lesson.Env{}
	if !program.Offline {
		env = LessonEnv(tb)
	}
	env.Out = &out
	err := program.Do(ctx, env)
	return out.String(), err
}

// LessonEnv returns what a lesson works with, in a namespace of its own. What the lesson prints is discarded.
func LessonEnv(tb testing.TB) *lesson.Env {
	tb.Helper()
	return &lesson.Env{Out: io.Discard, Config: Config(tb), Client: Client(tb), Namespace: Namespace(tb)}
}

// ExpectOutput runs a lesson and compares all that it prints with testdata/output.txt. After a change of the lesson, this command
// writes the new text: go run ./NAME >NAME/testdata/output.txt.
func ExpectOutput(tb testing.TB, program lesson.Lesson) {
	tb.Helper()
	out, err := Lesson(tb, program)
	if err != nil {
		tb.Fatalf("%v; it printed:\n%s", err, out)
	}
	want, err := os.ReadFile("testdata/output.txt")
	expectNo(tb, err)
	gomega.NewWithT(tb).Expect(out).To(gomega.Equal(string(want)))
}

// Kubeconfig writes config to a kubeconfig file, which is deleted when the test ends, and returns its path.
func Kubeconfig(tb testing.TB, config *rest.Config) string {
	tb.Helper()
	const name = "test"
	file := filepath.Join(tb.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: name,
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server:                   config.Host,
			CertificateAuthorityData: config.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: config.CertData,
			ClientKeyData:         config.KeyData,
		}},
	}, file)
	expectNo(tb, err)
	return file
}
