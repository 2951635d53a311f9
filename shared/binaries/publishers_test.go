package binaries

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/shared/config"
)

// fileServer is what dl.k8s.io and GitHub are to the harness, on this machine.
type fileServer struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string]string
	asked []string
	// rate is in bytes a second; 0: as fast as it goes.
	rate float64
}

func newFileServer(tb testing.TB) *fileServer {
	tb.Helper()
	f := &fileServer{files: map[string]string{}}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked = append(f.asked, r.URL.Path)
		content, found := f.files[r.URL.Path]
		f.mu.Unlock()
		if !found {
			http.NotFound(w, r)
			return
		}
		if torn, found := strings.CutSuffix(content, "TORN"); found {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			content = torn
		}
		if f.rate > 0 {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			sendSlowly(w, content, f.rate)
			return
		}
		_, _ = io.WriteString(w, content)
	}))
	tb.Cleanup(f.Close)
	return f
}

// sendSlowly is late now and then on a busy machine, and makes up for it: the rate is that of the whole file.
func sendSlowly(w io.Writer, content string, rate float64) {
	began := time.Now()
	for sent := 0; sent < len(content); {
		n := min(len(content)-sent, 64<<10)
		if _, err := io.WriteString(w, content[sent:sent+n]); err != nil {
			return
		}
		sent += n
		time.Sleep(time.Duration(float64(sent)/rate*float64(time.Second)) - time.Since(began))
	}
}

// store has both publishers of single files at the server, and builds that write a word.
func (f *fileServer) store(tb testing.TB) *store {
	tb.Helper()
	s := fakeStore(tb)
	kubernetes := kubernetesRelease(f.URL + "/release")
	kubernetes.programs = []string{"kubectl", "kube-controller-manager", "kube-scheduler"} // on other systems too
	s.publishers = []*publisher{kubernetes, kwokRelease(f.URL)}
	return s
}

func sumOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// kubernetesFile is where dl.k8s.io has a program.
func kubernetesFile(name string) string {
	return "/release/" + components()[name].version + "/bin/" + runtime.GOOS + "/" + runtime.GOARCH + "/" + name
}

// offerKubernetes has the server publish a program with its checksum beside it.
func (f *fileServer) offerKubernetes(name, content string) {
	f.files[kubernetesFile(name)], f.files[kubernetesFile(name)+".sha256"] = content, sumOf(content)+"\n"
}

// offerKwok has the server publish kwok, with a checksum that GitHub's API tells, or none.
func (f *fileServer) offerKwok(content, digest string) {
	version, name := components()["kwok"].version, "kwok-"+runtime.GOOS+"-"+runtime.GOARCH
	f.files["/file"] = content
	f.files["/repos/kubernetes-sigs/kwok/releases/tags/"+version] = fmt.Sprintf(
		`{"assets": [{"name": "kwokctl", "digest": "sha256:%s"}, {"name": %q, "digest": %s, "browser_download_url": %q}]}`,
		sumOf("kwokctl"), name, digest, f.URL+"/file")
}

// offerEnvtest has the server publish an archive of setup-envtest, and an index with its checksum.
func (f *fileServer) offerEnvtest(g Gomega, content func(name string) string) (sum string) {
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	for _, name := range envtestNames {
		text := content(name)
		g.Expect(files.WriteHeader(&tar.Header{Name: "controller-tools/envtest/" + name, Mode: 0o755, Size: int64(len(text))})).To(Succeed())
		_, err := io.WriteString(files, text)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(errors.Join(files.Close(), zipped.Close())).To(Succeed())
	digest := sha512.Sum512(archive.Bytes())
	sum = hex.EncodeToString(digest[:])
	version := config.Get("KUBERNETES_VERSION")
	f.files["/envtest.tar.gz"] = archive.String()
	f.files["/index.yaml"] = fmt.Sprintf("releases:\n  %s:\n    envtest-%s-%s-%s.tar.gz:\n      hash: %s\n      selfLink: %s/envtest.tar.gz\n",
		version, version, runtime.GOOS, runtime.GOARCH, sum, f.URL)
	return sum
}

func TestProgramsAreDownloadedBeforeAnythingIsBuilt(t *testing.T) {
	g := NewWithT(t)
	f := newFileServer(t)
	for _, name := range []string{"kube-scheduler", "kube-controller-manager"} {
		f.offerKubernetes(name, "downloaded "+name)
	}
	f.offerKwok("downloaded kwok", `"sha256:`+sumOf("downloaded kwok")+`"`)
	var said strings.Builder
	dir, err := f.store(t).ensure(t.Context(), &said, "kube-scheduler", "kube-controller-manager", "kwok")
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"kube-scheduler", "kube-controller-manager", "kwok"} {
		g.Expect(contents(g, dir, name)).To(Equal("downloaded " + name))
		info, err := os.Stat(filepath.Join(dir, name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()&0o500).To(BeEquivalentTo(0o500), "a program that can be run")
		g.Expect(said.String()).To(ContainSubstring("==> downloading " + name + " v"))
	}
}

// Nothing that was altered on its way may run, and a build must not hide it.
func TestAProgramWithAWrongChecksumIsAnError(t *testing.T) {
	for name, prepare := range map[string]func(*fileServer){
		"kube-scheduler": func(f *fileServer) {
			f.files[kubernetesFile("kube-scheduler")] = "altered"
			f.files[kubernetesFile("kube-scheduler")+".sha256"] = sumOf("published")
		},
		"kwok": func(f *fileServer) { f.offerKwok("altered", `"sha256:`+sumOf("published")+`"`) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFileServer(t)
			prepare(f)
			s := f.store(t)
			_, err := s.ensure(t.Context(), io.Discard, name)
			g.Expect(err).To(MatchError(And(
				ContainSubstring("downloading "+name), ContainSubstring("checksum mismatch"),
				ContainSubstring(sumOf("altered")), ContainSubstring(sumOf("published")))))
			g.Expect(s.cached(s.components[name])).NotTo(BeAnExistingFile())
			g.Expect(s.cached(s.components[name]) + ".partial").NotTo(BeADirectory())
		})
	}
}

func TestWhatCannotBeDownloadedIsBuiltAndSaid(t *testing.T) {
	for name, row := range map[string]struct {
		program string
		prepare func(*fileServer)
		reason  string
	}{
		"no such version": {"kube-scheduler", func(*fileServer) {}, "==> Kubernetes' programs cannot be downloaded: kube-scheduler.sha256 of HOST: HTTP status 404 Not Found\n"},
		"a page of a hotel in place of a checksum": {"kube-scheduler", func(f *fileServer) {
			f.files[kubernetesFile("kube-scheduler")+".sha256"] = "<html>your room, please</html>"
		}, "==> Kubernetes' programs cannot be downloaded: kube-scheduler.sha256 of HOST: it is not a checksum\n"},
		"a connection that breaks": {"kube-scheduler", func(f *fileServer) {
			f.files[kubernetesFile("kube-scheduler")] = "one halfTORN"
			f.files[kubernetesFile("kube-scheduler")+".sha256"] = sumOf("one half and the other")
		}, "==> Kubernetes' programs cannot be downloaded: kube-scheduler of HOST: unexpected EOF\n"},
		"a release without a checksum": {"kwok", func(f *fileServer) { f.offerKwok("downloaded", "null") },
			"==> kwok cannot be downloaded: v0.8.0 of HOST: it has no checksum of kwok-" + runtime.GOOS + "-" + runtime.GOARCH + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFileServer(t)
			row.prepare(f)
			var said strings.Builder
			dir, err := f.store(t).ensure(t.Context(), &said, row.program)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(contents(g, dir, row.program)).To(Equal("built"))
			g.Expect(said.String()).To(ContainSubstring(strings.ReplaceAll(row.reason, "HOST", f.Listener.Addr().String())))
		})
	}
}

func TestAPlaceThatCannotBeReachedIsAskedOnce(t *testing.T) {
	g := NewWithT(t)
	f := newFileServer(t)
	s := f.store(t)
	var said strings.Builder
	_, err := s.ensure(t.Context(), &said, "kube-scheduler", "kube-controller-manager", "kwok", "loopback")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.asked).To(HaveLen(2), "one request to each place")
	g.Expect(strings.Count(said.String(), "cannot be downloaded")).To(Equal(2))
}

// What one place does not have, the next one may: the API server is in two.
func TestTheNextPlaceIsAsked(t *testing.T) {
	g := NewWithT(t)
	f := newFileServer(t)
	f.offerKubernetes("kubectl", "downloaded")
	s := f.store(t)
	s.publishers = append([]*publisher{envtestRelease(f.URL + "/index.yaml")}, s.publishers...)
	dir, err := s.ensure(t.Context(), io.Discard, "kubectl")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(contents(g, dir, "kubectl")).To(Equal("downloaded"))
}

// The archive of setup-envtest, by the real program.
func TestTheArchiveOfTheAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("builds setup-envtest")
	}
	g := NewWithT(t)
	f := newFileServer(t)
	s := f.store(t)
	s.publishers = []*publisher{envtestRelease(f.URL + "/index.yaml")}
	sum := f.offerEnvtest(g, func(name string) string { return name })
	index := f.files["/index.yaml"]
	f.files["/index.yaml"] = strings.ReplaceAll(index, sum, strings.Repeat("0", 128))
	_, err := s.ensure(t.Context(), io.Discard, "etcd")
	g.Expect(err).To(MatchError(ContainSubstring("checksum mismatch")))
	f.files["/index.yaml"] = index
	dir, err := s.ensure(t.Context(), io.Discard, envtestNames...)
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range envtestNames {
		g.Expect(contents(g, dir, name)).To(Equal(name))
	}
}

func TestASilentDownloadEnds(t *testing.T) {
	g := NewWithT(t)
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "one half")
		w.(http.Flusher).Flush()
		<-silent
	}))
	defer server.Close()
	defer close(silent)
	from, err := get(t.Context(), http.MethodGet, server.URL+"/kwok", 2*time.Second)
	g.Expect(err).NotTo(HaveOccurred())
	defer from.Close()
	content, err := io.ReadAll(from)
	g.Expect(string(content)).To(Equal("one half"))
	g.Expect(err).To(MatchError("no response within 2s"))
}

func TestEachProgramOfTheEmbeddedClusterIsPublished(t *testing.T) {
	g := NewWithT(t)
	published := map[string]bool{}
	for _, p := range publishers() {
		for _, name := range p.programs {
			g.Expect(components()).To(HaveKey(name))
			published[name] = true
		}
	}
	names := []string{"etcd", "kube-apiserver", "kubectl", "kwok"}
	if runtime.GOOS == "linux" {
		names = append(names, "kube-controller-manager", "kube-scheduler")
	}
	for _, name := range names {
		g.Expect(published).To(HaveKey(name))
	}
}
