package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/shared/config"
)

func TestMain(m *testing.M) {
	// A busy machine needs more than the second that is the default.
	SetDefaultEventuallyTimeout(10 * time.Second)
	m.Run()
}

// fakeStore is a store with a folder of its own and sources that write a word instead of a program.
func fakeStore(tb testing.TB) *store {
	tb.Helper()
	s := &store{dir: tb.TempDir(), components: components()}
	s.publish(func(context.Context, string) error { return errors.New("no network") })
	s.build = func(_ context.Context, _ io.Writer, c component, into string) error {
		return os.WriteFile(filepath.Join(into, c.name), []byte("built"), 0o755)
	}
	return s
}

// publish has what an archive holds downloaded by a function.
func (s *store) publish(download func(ctx context.Context, into string) error) {
	s.publishers = []*publisher{{
		what: "etcd, kube-apiserver and kubectl", programs: envtestNames,
		download: func(ctx context.Context, _ io.Writer, _ component, into string) ([]string, error) {
			return envtestNames, download(ctx, into)
		},
	}}
}

func contents(g Gomega, dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	g.Expect(err).NotTo(HaveOccurred())
	return string(data)
}

func TestAssetsComeFirstForWhatTheyHave(t *testing.T) {
	g := NewWithT(t)
	s := fakeStore(t)
	built, err := s.ensure(t.Context(), io.Discard, "etcd", "kube-scheduler")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(contents(g, built, "etcd")).To(Equal("built"))

	s.assets = t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(s.assets, "etcd"), []byte("asset"), 0o755)).To(Succeed())
	withAssets, err := s.ensure(t.Context(), io.Discard, "etcd", "kube-scheduler")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(contents(g, withAssets, "etcd")).To(Equal("asset"))
	g.Expect(contents(g, withAssets, "kube-scheduler")).To(Equal("built"))

	// Without the variable the cache's own is there again.
	s.assets = ""
	again, err := s.ensure(t.Context(), io.Discard, "etcd")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(built))
	g.Expect(contents(g, again, "etcd")).To(Equal("built"))
}

func TestTheCacheIsUsedBeforeAnyOtherSource(t *testing.T) {
	g := NewWithT(t)
	s := fakeStore(t)
	_, err := s.ensure(t.Context(), io.Discard, "etcd", "kwok")
	g.Expect(err).NotTo(HaveOccurred())

	fails := errors.New("asked for a program that is cached")
	s.publish(func(context.Context, string) error { return fails })
	s.build = func(context.Context, io.Writer, component, string) error { return fails }
	_, err = s.ensure(t.Context(), io.Discard, "etcd", "kwok")
	g.Expect(err).NotTo(HaveOccurred())
}

func TestADownloadGivesAllThreeAndNothingElse(t *testing.T) {
	g := NewWithT(t)
	s := fakeStore(t)
	downloads := 0
	s.publish(func(_ context.Context, into string) error {
		downloads++
		for _, name := range envtestNames {
			if err := os.WriteFile(filepath.Join(into, name), []byte("downloaded"), 0o755); err != nil {
				return err
			}
		}
		return nil
	})
	dir, err := s.ensure(t.Context(), io.Discard, "etcd", "kube-apiserver", "kubectl", "kube-scheduler")
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range envtestNames {
		g.Expect(contents(g, dir, name)).To(Equal("downloaded"))
	}
	g.Expect(contents(g, dir, "kube-scheduler")).To(Equal("built"))
	g.Expect(downloads).To(Equal(1))
}

func TestAFailedDownloadIsReportedOnceWithItsReason(t *testing.T) {
	g := NewWithT(t)
	s := fakeStore(t)
	tries := 0
	s.publish(func(context.Context, string) error {
		tries++
		return errors.New("exit status 1: go: downloading example.com/tool v1.0.0\nunable to request the index: no such host\nexit status 2")
	})
	var said bytes.Buffer
	_, err := s.ensure(t.Context(), &said, "kwok", "etcd", "kube-apiserver")
	g.Expect(err).NotTo(HaveOccurred())
	dir, err := s.ensure(t.Context(), &said, "kubectl")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(contents(g, dir, "kubectl")).To(Equal("built"))
	g.Expect(said.String()).To(Equal("==> etcd, kube-apiserver and kubectl cannot be downloaded: " +
		"unable to request the index: no such host\n"))
	g.Expect(tries).To(Equal(1), "downloads tried in one run")
}

// Nothing that was altered on its way may run: a build must not hide it.
func TestAWrongChecksumIsAnError(t *testing.T) {
	g := NewWithT(t)
	s := fakeStore(t)
	s.publish(func(context.Context, string) error {
		return fmt.Errorf("running setup-envtest: %w", errors.New("unable to download requested version: checksum mismatch for envtest.tar.gz: 12 (computed) != 34 (reported)"))
	})
	var said bytes.Buffer
	_, err := s.ensure(t.Context(), &said, "etcd")
	g.Expect(err).To(MatchError(And(ContainSubstring("downloading etcd"), ContainSubstring("12 (computed) != 34 (reported)"))))
	g.Expect(s.cached(s.components["etcd"])).NotTo(BeAnExistingFile())
}

func TestAnInterruptedDownloadIsNotFollowedByABuild(t *testing.T) {
	g := NewWithT(t)
	s := fakeStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.publish(func(context.Context, string) error {
		cancel()
		return errors.New("signal: interrupt")
	})
	var said bytes.Buffer
	_, err := s.ensure(ctx, &said, "etcd")
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(said.String()).To(BeEmpty())
}

func TestAFailedBuildLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	s := fakeStore(t)
	works := s.build
	s.build = func(_ context.Context, _ io.Writer, c component, into string) error {
		g.Expect(os.WriteFile(filepath.Join(into, c.name), []byte("half"), 0o755)).To(Succeed())
		return errors.New("compiler says no")
	}
	_, err := s.ensure(t.Context(), io.Discard, "etcd")
	g.Expect(err).To(MatchError(ContainSubstring("compiler says no")))
	g.Expect(s.cached(s.components["etcd"])).NotTo(BeAnExistingFile())
	g.Expect(s.cached(s.components["etcd"]) + ".partial").NotTo(BeADirectory())

	// What a killed run leaves is not taken for a program either.
	partial := s.cached(s.components["etcd"]) + ".partial"
	g.Expect(os.MkdirAll(partial, 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(partial, "etcd"), []byte("half"), 0o755)).To(Succeed())
	s.build = works
	dir, err := s.ensure(t.Context(), io.Discard, "etcd")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(contents(g, dir, "etcd")).To(Equal("built"))
}

// syncBuffer is a bytes.Buffer that one goroutine writes and another reads.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestASecondProcessWaitsAndSaysSo(t *testing.T) {
	g := NewWithT(t)
	first := fakeStore(t)
	building, finish := make(chan struct{}), make(chan struct{})
	works := first.build
	first.build = func(ctx context.Context, out io.Writer, c component, into string) error {
		close(building)
		<-finish
		return works(ctx, out, c, into)
	}
	firstDone := make(chan error, 1)
	go func() {
		_, err := first.ensure(t.Context(), io.Discard, "kwok")
		firstDone <- err
	}()
	<-building

	// A file lock belongs to the open file, so two stores in one process are as good as two processes.
	second := *first
	second.build = func(context.Context, io.Writer, component, string) error {
		return errors.New("built a second time")
	}
	var said syncBuffer
	secondDone := make(chan error, 1)
	go func() {
		_, err := second.ensure(t.Context(), &said, "kwok")
		secondDone <- err
	}()
	g.Eventually(said.String).Should(ContainSubstring("waiting for another process that is making kwok"))
	g.Consistently(secondDone, "300ms").ShouldNot(Receive())
	close(finish)
	g.Eventually(firstDone).Should(Receive(BeNil()))
	g.Eventually(secondDone).Should(Receive(BeNil()))
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	g := NewWithT(t)
	s := fakeStore(t)
	c := s.components["kwok"]
	unlock, err := s.lock(t.Context(), io.Discard, c)
	g.Expect(err).NotTo(HaveOccurred())
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.ensure(ctx, io.Discard, "kwok")
	g.Expect(err).To(MatchError(context.Canceled))
}

func TestAnUnknownNameIsRefused(t *testing.T) {
	g := NewWithT(t)
	_, err := fakeStore(t).ensure(t.Context(), io.Discard, "kube-teapot")
	g.Expect(err).To(MatchError(ContainSubstring(`"kube-teapot"`)))
}

// The components with a go.mod of their own have their version there too, for go's sake.
func TestComponentModulesPinTheVersionsOfHarnessEnv(t *testing.T) {
	g := NewWithT(t)
	harness, err := config.Harness()
	g.Expect(err).NotTo(HaveOccurred())
	for module, required := range map[string]string{
		"kubernetes": "k8s.io/kubernetes " + config.Get("KUBERNETES_VERSION"),
		"etcd":       "go.etcd.io/etcd/server/v3 " + config.Get("ETCD_VERSION"),
	} {
		gomod, err := os.ReadFile(filepath.Join(harness, "scripts", "components", module, "go.mod"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(gomod)).To(ContainSubstring(required))
	}
}

// skipWithoutNetwork skips a test that asks the module proxy, which go install with a version does even for what is in the cache.
func skipWithoutNetwork(t *testing.T, err error) {
	t.Helper()
	if err != nil && regexp.MustCompile(`GOPROXY=off|dial tcp|no such host|i/o timeout|connection refused`).MatchString(err.Error()) {
		t.Skipf("this needs the module proxy: %v", err)
	}
}

// The smallest real component, built by the real go command and asked for its version.
func TestARealBuildReportsItsVersion(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a CNI plugin")
	}
	g := NewWithT(t)
	c := components()["loopback"]
	dir := t.TempDir()
	var said bytes.Buffer
	err := build(t.Context(), &said, c, dir)
	skipWithoutNetwork(t, err)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(said.String()).To(ContainSubstring("building loopback " + c.version))

	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "loopback"))
	cmd.Env = []string{"CNI_COMMAND=VERSION"}
	cmd.Stdin = strings.NewReader(`{"cniVersion":"1.0.0"}`)
	response, err := cmd.Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(response)).To(ContainSubstring("supportedVersions"))
}

func TestABrokenBuildSaysWhatTheCompilerSaid(t *testing.T) {
	g := NewWithT(t)
	c := component{name: "no-such-plugin", version: config.Get("CNI_PLUGINS_VERSION"), pkg: "github.com/containernetworking/plugins/plugins/meta/no-such-plugin"}
	err := build(t.Context(), io.Discard, c, t.TempDir())
	skipWithoutNetwork(t, err)
	g.Expect(err).To(MatchError(And(ContainSubstring("building no-such-plugin"), ContainSubstring("does not contain package"))))
}
