package binaries

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// What a first `make stage-2 e2e` downloads for the embedded cluster, and for how long. The files are those of this
// machine's cache: where they were built, they are not those that are published, and the times are theirs.
func BenchmarkDownloadsAt50Mbit(b *testing.B) {
	g := NewWithT(b)
	cache, err := newStore()
	g.Expect(err).NotTo(HaveOccurred())
	cache.assets = ""
	content := func(name string) string {
		data, err := os.ReadFile(cache.cached(components()[name]))
		if err != nil {
			b.Skip("the cache is not complete: ", err)
		}
		return string(data)
	}
	f := newFileServer(b)
	f.offerEnvtest(g, content)
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		f.offerKubernetes(name, content(name))
	}
	kwok := content("kwok")
	f.offerKwok(kwok, `"sha256:`+sumOf(kwok)+`"`)
	f.rate = 50e6 / 8
	bytes := 0
	for _, file := range f.files {
		bytes += len(file)
	}
	for b.Loop() {
		s := f.store(b)
		s.publishers = append([]*publisher{envtestRelease(f.URL + "/index.yaml")}, s.publishers...)
		s.build = func(_ context.Context, _ io.Writer, c component, _ string) error {
			return errors.New(c.name + " is built")
		}
		began := time.Now()
		_, err = s.ensure(b.Context(), os.Stdout, "etcd", "kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler", "kwok")
		g.Expect(err).NotTo(HaveOccurred())
		b.Logf("%.0f MB, of programs that may have been built here, in %.1f s at 50 Mbit/s; the link alone needs %.1f s",
			float64(bytes)/1e6, time.Since(began).Seconds(), float64(bytes)/f.rate)
	}
}
