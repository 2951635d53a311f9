package tag

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// program is what is deployed: it prints one line, and waits until it is stopped.
const program = `package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

var version string

func main() {
	greeting, err := os.ReadFile("/greeting")
	if err != nil {
		panic(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	fmt.Printf("%s says %s%s\n", version, os.Getenv("HOW"), greeting)
	<-stop
}
`

// loop is a copy of the reader's folder, with what is built, and a namespace in which it is deployed.
type loop struct {
	b                           *check.B
	client                      kubernetes.Interface
	namespace, temp, dir, tools string
}

func newLoop(b *check.B, work string) *loop {
	temp, err := os.MkdirTemp("", "tag-")
	if err != nil {
		b.Fatalf("%v", err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(temp) })
	l := &loop{
		b: b, client: kube.Client(b), namespace: kube.Namespace(b),
		temp: temp, dir: filepath.Join(temp, "copy"), tools: filepath.Join(temp, "tools"),
	}
	l.must("copying your folder", os.CopyFS(l.dir, os.DirFS(work)))
	l.must("making a folder", os.Mkdir(l.tools, 0o700))
	l.link("kubectl", os.Getenv(check.KubectlVariable))
	_, err = exec.LookPath("docker")
	l.must("this exercise needs Docker", err)
	l.writeLoad()
	l.must("writing a kubeconfig", clientcmd.WriteToFile(*l.kubeconfig(), filepath.Join(temp, "kubeconfig")))
	b.Cleanup(l.removeImages)
	l.compile("1")
	l.greet("Moo")
	return l
}

func (l *loop) must(what string, err error) {
	if err != nil {
		l.b.Fatalf("%s: %v", what, err)
	}
}

func (l *loop) link(name, target string) {
	l.must("making a link", os.Symlink(target, filepath.Join(l.tools, name)))
}

func (l *loop) write(file, content string, mode os.FileMode) {
	l.must("writing a file", os.WriteFile(file, []byte(content), mode))
}

// writeLoad writes the program that loads an image into the nodes, as kind load docker-image does. A node of kind is a container of
// its name.
func (l *loop) writeLoad() {
	nodes, err := l.client.CoreV1().Nodes().List(l.b.Context(), metav1.ListOptions{})
	l.must("listing the nodes", err)
	script := []string{"#!/bin/sh", "set -eu"}
	for _, node := range nodes.Items {
		script = append(script, `docker save "$1" | docker exec -i `+node.Name+" ctr --namespace=k8s.io images import - >/dev/null")
	}
	l.write(filepath.Join(l.tools, "load"), strings.Join(script, "\n")+"\n", 0o700)
}

// kubeconfig leads to the cluster, and to the namespace in it.
func (l *loop) kubeconfig() *api.Config {
	access, config := kube.Config(l.b), api.NewConfig()
	config.Clusters["kind"] = &api.Cluster{Server: access.Host, CertificateAuthorityData: access.CAData}
	config.AuthInfos["kind"] = &api.AuthInfo{ClientCertificateData: access.CertData, ClientKeyData: access.KeyData}
	config.Contexts["kind"] = &api.Context{Cluster: "kind", AuthInfo: "kind", Namespace: l.namespace}
	config.CurrentContext = "kind"
	return config
}

// compile makes the program of a version.
func (l *loop) compile(version string) {
	l.b.Event("the program of version %s is compiled", version)
	source := filepath.Join(l.temp, "page.go")
	l.write(source, program, 0o600)
	cmd := exec.CommandContext(l.b.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X main.version="+version,
		"-o", filepath.Join(l.dir, "page"), source)
	cmd.Dir = l.temp
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH, "GOFLAGS=", "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		l.b.Fatalf("compiling the program: %v\n%s", err, output)
	}
}

// greet changes what the program says. The namespace makes the image another one than those that are on the nodes.
func (l *loop) greet(greeting string) {
	l.b.Event("the greeting is %s", greeting)
	l.write(filepath.Join(l.dir, "greeting"), greeting+" in "+l.namespace, 0o600)
}

// changeDockerfile changes how the program says it.
func (l *loop) changeDockerfile() {
	l.b.Event("the Dockerfile gets another line")
	file := filepath.Join(l.dir, "Dockerfile")
	content, err := os.ReadFile(file)
	l.must("reading the Dockerfile", err)
	l.write(file, string(content)+"\nENV HOW=\"loudly \"\n", 0o600)
}

// deploy calls the reader's script.
func (l *loop) deploy() {
	l.b.Event("deploy.sh is called")
	cmd := exec.CommandContext(l.b.Context(), "sh", "deploy.sh")
	cmd.Dir = l.dir
	cmd.Env = append(os.Environ(), "PATH="+l.tools+string(filepath.ListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(l.temp, "kubeconfig"),
		// With attestations, which have the time, each build would have another ID.
		"BUILDX_NO_DEFAULT_ATTESTATIONS=1")
	output, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(output)) {
		l.b.Event("  %s", strings.TrimSpace(line))
	}
	if err != nil {
		l.b.Fatalf("deploy.sh failed: %v", err)
	}
}

// removeImages removes what was built from the engine. On the nodes it stays until the kubelet needs the space.
func (l *loop) removeImages() {
	ctx := context.WithoutCancel(l.b.Context())
	// A reader's Dockerfile may have no label. They are small, and the next run tries again.
	for _, filter := range []string{"label=exercise=22c", "reference=exercise-22c"} {
		if ids, err := exec.CommandContext(ctx, "docker", "image", "ls", "--quiet", "--filter", filter).Output(); err == nil {
			_ = exec.CommandContext(ctx, "docker", append([]string{"image", "rm", "--force"}, strings.Fields(string(ids))...)...).Run()
		}
	}
}

// files returns a checksum of each file below the folder.
func (l *loop) files() map[string]string {
	sums, files := map[string]string{}, os.DirFS(l.dir)
	l.must("reading the folder", fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		sums[path] = fmt.Sprintf("%x", sha256.Sum256(content))
		return err
	}))
	return sums
}

func (l *loop) unchanged(before map[string]string) {
	after := l.files()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] != before[name] {
			l.b.Fatalf("deploy.sh has changed the file %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] == "" {
			l.b.Fatalf("deploy.sh has left the file %s", name)
		}
	}
}
