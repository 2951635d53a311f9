package image

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/config"
)

// nodes is a cluster that remembers what was loaded into it.
type nodes struct {
	cluster.Cluster
	embedded bool
	loaded   []string
}

func (n *nodes) RunsContainers() bool { return !n.embedded }

func (n *nodes) LoadImages(_ context.Context, refs ...string) (bool, error) {
	n.loaded = append(n.loaded, refs...)
	return true, nil
}

// fakeEngine puts a docker on PATH that has two images, flux:1 and that of kind's nodes, and returns the file with
// its calls.
func fakeEngine(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	script := `#!/bin/sh
echo "$*" >>` + calls + `
case "$*" in
"image inspect --format {{.Id}} flux:1") echo sha256:0123456789abcdef0123 ;;
"image inspect ` + config.Get("KIND_NODE_IMAGE") + `") ;;
"image inspect --format {{.Id}} busybox:1.37") test -f ${0%/*}/pulled && echo sha256:fedcba9876543210fedc ;;
"image inspect "*) exit 1 ;;
"pull busybox:1.37") test ! -f ${0%/*}/offline && touch ${0%/*}/pulled || { echo no such host >&2; exit 1; } ;;
"push refused.example.com/"*) echo denied >&2; exit 1 ;;
"version --format {{.Server.Arch}}") echo ` + runtime.GOARCH + ` ;;
build*--iidfile*)
	# The id follows from all that is in the folder.
	iid=${*#*--iidfile }
	echo sha256:$(find . -type f -exec cat {} + | cksum | tr -d ' ')0123456789 >"${iid%% *}" ;;
"image ls "*) echo example.com/workbook/given:0123456789ab; echo example.com/workbook/given:older ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("HARNESS_CACHE", t.TempDir())
	return calls
}

func TestGiven(t *testing.T) {
	for name, row := range map[string]struct {
		ref      string
		embedded bool
		want     string
		loaded   []string
	}{
		"the engine has it":   {"flux:1", false, "example.com/workbook/given:0123456789ab", []string{"example.com/workbook/given:0123456789ab"}},
		"the engine lacks it": {"flux:2", false, "flux:2", nil},
		"no container runs":   {"flux:1", true, "flux:1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			calls := fakeEngine(t)
			to := &nodes{embedded: row.embedded}
			var out bytes.Buffer
			got, err := Given(t.Context(), &out, to, row.ref)
			if err != nil || got != row.want || !slices.Equal(to.loaded, row.loaded) {
				t.Errorf("got %s, %v, loaded %v; want %s, %v", got, err, to.loaded, row.want, row.loaded)
			}
			made, _ := os.ReadFile(calls)
			tagged := strings.Contains(string(made), "tag flux:1 example.com/workbook/given:0123456789ab\n")
			pruned := strings.Contains(string(made), "image rm example.com/workbook/given:older\n")
			if wantCalls := row.loaded != nil; tagged != wantCalls || pruned != wantCalls {
				t.Errorf("the engine was called with\n%s", made)
			}
		})
	}
}

// Without containers there is nothing to build, and no engine is asked.
func TestForTestIsOnlyANameWithoutContainers(t *testing.T) {
	got, err := ForTest(t.Context(), &bytes.Buffer{}, &nodes{embedded: true}, newStage(t), "server")
	if want := "example.com/workbook/05-teapot-server:not-built"; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// The image is built from the folder's own program and Dockerfile, with the image of the nodes, and loaded.
func TestForTest(t *testing.T) {
	calls := fakeEngine(t)
	dir := newStage(t)
	dockerfile := "ARG NODE_IMAGE\nFROM ${NODE_IMAGE}\nFROM scratch AS server\nCOPY bin/linux-${TARGETARCH}/server /\n"
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o600); err != nil {
		t.Fatal(err)
	}
	to := &nodes{}
	ref, err := ForTest(t.Context(), &bytes.Buffer{}, to, dir, "server")
	if err != nil || !strings.HasPrefix(ref, "example.com/workbook/05-teapot-server:") || !slices.Equal(to.loaded, []string{ref}) {
		t.Errorf("got %s, %v, loaded %v", ref, err, to.loaded)
	}
	made, _ := os.ReadFile(calls)
	want := "build --target server --tag " + ref + " --build-arg TARGETARCH=" + runtime.GOARCH +
		" --build-arg NODE_IMAGE=" + config.Get("KIND_NODE_IMAGE") + " .\n"
	if !strings.Contains(string(made), want) {
		t.Errorf("the engine was called with\n%swant %s", made, want)
	}
}

func TestReferenceFollowsTheBuildArguments(t *testing.T) {
	dir := newStage(t)
	binary, err := Binary(t.Context(), dir, "server", runtime.GOOS, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, args := range [][]string{nil, {"NODE_IMAGE=a"}, {"NODE_IMAGE=b"}} {
		ref, err := reference(dir, "server", []string{binary}, args...)
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := seen[ref]; taken {
			t.Errorf("%v and %s are both called %s", args, other, ref)
		}
		seen[ref] = strings.Join(args, " ")
	}
}

func TestWantsNodeImage(t *testing.T) {
	for text, want := range map[string]bool{
		"ARG NODE_IMAGE\nFROM ${NODE_IMAGE}\n": true,
		"ARG  NODE_IMAGE\n":                    true,
		"ARG NODE_IMAGES\n":                    false,
		"# ARG NODE_IMAGE\nFROM scratch\n":     false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := wantsNodeImage(dir); err != nil || got != want {
			t.Errorf("%q: got %t, %v", text, got, err)
		}
	}
}
