package binaries

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/step"
)

// publisher is a place that programs are downloaded from.
type publisher struct {
	// what says in a message which programs it has.
	what     string
	programs []string
	// download fetches a program into a folder and returns which ones are there then. It fails quickly, before it prints
	// anything, when the place cannot be reached.
	download func(ctx context.Context, out io.Writer, c component, into string) (names []string, err error)
	// failed is set once a download has failed: the process then reports the reason only once, and does not wait for the same
	// failure with each further program.
	failed atomic.Bool
}

// publishers are in the order in which they are tried.
var publishers = sync.OnceValue(func() []*publisher {
	return []*publisher{
		envtestRelease(envtestIndex), kubernetesRelease("https://dl.k8s.io/release"), kwokRelease("https://api.github.com"),
	}
})

// envtestNames are what `setup-envtest` downloads, all in one archive.
var envtestNames = []string{"etcd", "kube-apiserver", "kubectl"}

// envtestIndex lists the archives that setup-envtest downloads, with their checksums.
const envtestIndex = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"

func envtestRelease(index string) *publisher {
	return &publisher{
		what: "etcd, kube-apiserver and kubectl", programs: envtestNames,
		download: func(ctx context.Context, out io.Writer, _ component, into string) ([]string, error) {
			if err := probe(ctx, index); err != nil {
				return nil, err
			}
			version := strings.TrimPrefix(config.Get("KUBERNETES_VERSION"), "v")
			tool := "sigs.k8s.io/controller-runtime/tools/setup-envtest@" + config.Get("SETUP_ENVTEST_VERSION")
			return envtestNames, step.Run(ctx, out, "downloading etcd, kube-apiserver and kubectl "+version, func(ctx context.Context) error {
				dir, err := goCommand(ctx, into, nil, "run", tool, "use", version, "--index", index, "--bin-dir", into, "--print", "path")
				if err != nil {
					return fmt.Errorf("running setup-envtest: %w", err)
				}
				return unpack(dir, into)
			})
		},
	}
}

// unpack moves envtestNames out of the folder where setup-envtest has put them, and which it has made read-only.
func unpack(dir, into string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	for _, name := range envtestNames {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(into, name)); err != nil {
			return fmt.Errorf("unpacking %s: %w", name, err)
		}
	}
	return nil
}

// kubernetesRelease has each program of Kubernetes as a file, and its checksum in a file beside it: servers for Linux
// only. The programs of a node are not downloaded, because where downloads are possible the whole node image is pulled.
func kubernetesRelease(base string) *publisher {
	programs := []string{"kubectl"}
	if runtime.GOOS == "linux" {
		programs = append(programs, "kube-apiserver", "kube-controller-manager", "kube-scheduler")
	}
	return &publisher{
		what: "Kubernetes' programs", programs: programs,
		download: func(ctx context.Context, out io.Writer, c component, into string) ([]string, error) {
			address := strings.Join([]string{base, c.version, "bin", runtime.GOOS, runtime.GOARCH, c.name}, "/")
			text, err := getText(ctx, address+".sha256")
			if err != nil {
				return nil, err
			}
			sum := strings.TrimSpace(string(text))
			if !isSum.MatchString(sum) {
				return nil, fmt.Errorf("%s: it is not a checksum", describe(address+".sha256"))
			}
			return downloadOne(ctx, out, c, address, sum, into)
		},
	}
}

// kwokRelease is on GitHub. kwok's authors publish no checksums, but GitHub's API returns one of each file that was uploaded.
func kwokRelease(api string) *publisher {
	return &publisher{
		what: "kwok", programs: []string{"kwok"},
		download: func(ctx context.Context, out io.Writer, c component, into string) ([]string, error) {
			release := api + "/repos/kubernetes-sigs/kwok/releases/tags/" + c.version
			text, err := getText(ctx, release)
			if err != nil {
				return nil, err
			}
			var published struct {
				Assets []struct {
					Name    string `json:"name"`
					Address string `json:"browser_download_url"`
					Digest  string `json:"digest"`
				} `json:"assets"`
			}
			if err := json.Unmarshal(text, &published); err != nil {
				return nil, fmt.Errorf("%s: %w", describe(release), err)
			}
			name := "kwok-" + runtime.GOOS + "-" + runtime.GOARCH
			for _, asset := range published.Assets {
				sum, found := strings.CutPrefix(asset.Digest, "sha256:")
				if asset.Name == name && found && isSum.MatchString(sum) {
					return downloadOne(ctx, out, c, asset.Address, sum, into)
				}
			}
			return nil, fmt.Errorf("%s: it has no checksum of %s", describe(release), name)
		},
	}
}

var isSum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// downloadOne downloads a component that is one file.
func downloadOne(ctx context.Context, out io.Writer, c component, address, sum, into string) ([]string, error) {
	return []string{c.name}, step.Run(ctx, out, "downloading "+c.name+" "+c.version, func(ctx context.Context) error {
		return fetch(ctx, out, address, sum, filepath.Join(into, c.name))
	})
}

// has reports whether a program can be downloaded from the publisher.
func (p *publisher) has(name string) bool {
	return slices.Contains(p.programs, name) && !p.failed.Load()
}

// giveUp reports why a download failed, before a build that takes minutes. It returns an error if no build may follow: after a
// wrong checksum, because the download may have been tampered with, and after the end of ctx.
func (p *publisher) giveUp(ctx context.Context, out io.Writer, c component, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// setup-envtest and the go command use the same words.
	if strings.Contains(err.Error(), errChecksum.Error()) {
		return fmt.Errorf("downloading %s: %w", c.name, err)
	}
	if !p.failed.Swap(true) {
		fmt.Fprintf(out, "==> %s cannot be downloaded: %s\n", p.what, oneLine(err))
	}
	return nil
}
