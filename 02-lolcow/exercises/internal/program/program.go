// Package program is what checks have in common whose exercise is to write a program, or a project with one: it is compiled once,
// and run as a process of its own with access to the API server.
package program

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// limit is how long a run may take.
const limit = 30 * time.Second

// Program is a program of the reader's.
type Program struct{ temp, dir string }

// Build compiles the program of a package, such as ".", in a folder. What the compiler says ends the behaviour.
func Build(b *check.B, dir, of string) *Program {
	temp, err := os.MkdirTemp("", "program-")
	if err != nil {
		b.Fatalf("%v", err)
	}
	p := &Program{temp: temp, dir: dir}
	cmd := exec.CommandContext(b.Context(), "go", "build", "-tags=start", "-ldflags=-s -w", "-buildvcs=false", "-o", p.binary(), of)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED="+cmp.Or(os.Getenv("CGO_ENABLED"), "0"))
	output, err := cmd.CombinedOutput()
	if err == nil {
		err = writeKubeconfig(p.kubeconfig(), kube.Config(b))
	}
	if err != nil {
		p.Remove()
		b.Fatalf("%s", cmp.Or(readable(string(output)), err.Error()))
	}
	return p
}

// readable leaves out the name of the package.
func readable(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "# ") {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "./"))
		}
	}
	return strings.Join(lines, "\n")
}

// writeKubeconfig writes a file by which kubectl, and programs like it, reach the API server.
func writeKubeconfig(file string, config *rest.Config) error {
	out := api.NewConfig()
	out.Clusters["exercise"] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos["exercise"] = &api.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	out.Contexts["exercise"] = &api.Context{Cluster: "exercise", AuthInfo: "exercise"}
	out.CurrentContext = "exercise"
	return clientcmd.WriteToFile(*out, file)
}

func (p *Program) binary() string     { return filepath.Join(p.temp, "program") }
func (p *Program) kubeconfig() string { return filepath.Join(p.temp, "kubeconfig") }

// Remove deletes the program.
func (p *Program) Remove() { _ = os.RemoveAll(p.temp) }

// Run runs the program, and returns what it prints on standard output. The error has what it prints on standard error.
func (p *Program) Run(b *check.B, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(b.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.binary(), args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig())
	var errors bytes.Buffer
	cmd.Stderr = &errors
	output, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(errors.Bytes()))
	}
	for line := range strings.Lines(string(output)) {
		b.Event("  the program prints: %s", strings.TrimRight(line, "\n"))
	}
	return string(output), err
}
