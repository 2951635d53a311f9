package binaries

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// asUser reports whether this process is a user's. As root, whom no mode of a folder keeps out, it runs the test in a
// process of a user, and returns false.
func asUser(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	const nobody = 65534
	g := NewWithT(t)
	dir := t.TempDir()
	// The test's binary, like the folder of all its temporary folders, is only for who started it.
	program, err := os.ReadFile(os.Args[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, "binaries.test"), program, 0o755)).To(Succeed())
	g.Expect(os.Chmod(filepath.Dir(dir), 0o755)).To(Succeed())
	g.Expect(os.Chown(dir, nobody, nobody)).To(Succeed())
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "binaries.test"), "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	output, err := cmd.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	g.Expect(string(output)).To(ContainSubstring("--- PASS"))
	return false
}

// archive unpacks as setup-envtest does: the folder is for reading.
func archive(into string) (string, error) {
	dir := filepath.Join(into, "k8s", "1.37.0-linux-amd64")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range envtestNames {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("downloaded"), 0o555); err != nil {
			return "", err
		}
	}
	return dir, os.Chmod(dir, 0o555)
}

func TestADownloadIsUnpackedByAUser(t *testing.T) {
	if !asUser(t) {
		return
	}
	g := NewWithT(t)
	s := fakeStore(t)
	s.publish(func(_ context.Context, into string) error {
		dir, err := archive(into)
		if err != nil {
			return err
		}
		return unpack(dir, into)
	})
	var said strings.Builder
	dir, err := s.ensure(t.Context(), &said, "etcd")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(said.String()).To(BeEmpty())
	g.Expect(contents(g, dir, "etcd")).To(Equal("downloaded"))
	g.Expect(s.cached(s.components["etcd"]) + ".partial").NotTo(BeADirectory())
}

func TestAnInterruptedDownloadIsInNobodysWay(t *testing.T) {
	if !asUser(t) {
		return
	}
	g := NewWithT(t)
	s := fakeStore(t)
	partial := s.cached(s.components["etcd"]) + ".partial"
	_, err := archive(partial)
	g.Expect(err).NotTo(HaveOccurred())
	dir, err := s.ensure(t.Context(), io.Discard, "etcd")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(contents(g, dir, "etcd")).To(Equal("built"))

	// One that is interrupted now leaves nothing either.
	s = fakeStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.publish(func(_ context.Context, into string) error {
		cancel()
		_, err := archive(into)
		g.Expect(err).NotTo(HaveOccurred())
		return context.Canceled
	})
	_, err = s.ensure(ctx, io.Discard, "etcd")
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(s.cached(s.components["etcd"]) + ".partial").NotTo(BeADirectory())
}

// KUBEBUILDER_ASSETS may be a folder that Ensure has returned.
func TestTheCacheAsAssetsIsTheSameSet(t *testing.T) {
	g := NewWithT(t)
	s := fakeStore(t)
	dir, err := filepath.EvalSymlinks(s.dir)
	g.Expect(err).NotTo(HaveOccurred())
	s.dir = dir
	dir, err = s.ensure(t.Context(), io.Discard, "etcd", "kube-apiserver")
	g.Expect(err).NotTo(HaveOccurred())
	s.assets = dir
	g.Expect(s.set()).To(Equal(dir))
	g.Expect(s.ensure(t.Context(), io.Discard, "etcd", "kube-scheduler")).To(Equal(dir))
	g.Expect(contents(g, dir, "etcd")).To(Equal("built"))
}

// A machine that loses its power may keep the name of a file and not its content.
func TestAnEmptyProgramIsMadeAgain(t *testing.T) {
	g := NewWithT(t)
	s := fakeStore(t)
	g.Expect(os.WriteFile(s.cached(s.components["kwok"]), nil, 0o755)).To(Succeed())
	dir, err := s.ensure(t.Context(), io.Discard, "kwok")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(contents(g, dir, "kwok")).To(Equal("built"))
}

func TestALinkToTheCacheIsTheSameSet(t *testing.T) {
	g := NewWithT(t)
	cache, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	g.Expect(os.Symlink(cache, link)).To(Succeed())
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("HARNESS_CACHE", cache)
	direct, err := Set()
	g.Expect(err).NotTo(HaveOccurred())
	t.Setenv("HARNESS_CACHE", link)
	g.Expect(Set()).To(Equal(direct))
}
