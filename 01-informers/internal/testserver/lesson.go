package testserver

import (
	"bytes"
	"context"
	"flag"
	"io"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/workbook/01-informers/internal/lesson"
)

// lessonTimeout bounds the run of a lesson in a test. A lesson takes about 10 s, and more when several test
// packages run at once on two cores.
const lessonTimeout = 90 * time.Second

// Lesson runs a lesson in a namespace of its own, with these flags, and returns what it printed. An offline
// lesson gets neither a namespace nor a server.
func Lesson(tb testing.TB, program lesson.Lesson, args ...string) (string, error) {
	tb.Helper()
	flags := flag.NewFlagSet(program.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if program.Flags != nil {
		program.Flags(flags)
	}
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(tb.Context(), lessonTimeout)
	defer cancel()
	var out bytes.Buffer
	env := &lesson.Env{Out: &out}
	if !program.Offline {
		env.Config, env.Client, env.Namespace = Config(tb), Client(tb), Namespace(tb)
	}
	err := program.Run(ctx, env)
	return out.String(), err
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
			Token:                 config.BearerToken,
		}},
	}, file)
	if err != nil {
		tb.Fatal(err)
	}
	return file
}
