package registry

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// ask sends a request and returns what came back.
func ask(t *testing.T, method, url, contentType, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestPushedHereAndPulledThere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a second address of this machine's own")
	}
	r := &Registry{pulled: map[string]bool{}}
	port, err := r.serve("127.0.0.1", "127.0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	dir := r.dir
	here, there := "http://127.0.0.1:"+port, "http://127.0.0.2:"+port

	blob := "the layer"
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(blob)))
	const kind = "application/vnd.docker.distribution.manifest.v2+json"
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"digest":%q,"size":9},"layers":[]}`, kind, digest)
	push := func(to string) []int {
		first, _ := ask(t, http.MethodPost, to+"/v2/a/teapot/blobs/uploads/?digest="+digest, "application/octet-stream", blob)
		second, _ := ask(t, http.MethodPut, to+"/v2/a/teapot/manifests/v1", kind, manifest)
		return []int{first, second}
	}
	if got := push(there); !slices.Equal(got, []int{http.StatusMethodNotAllowed, http.StatusMethodNotAllowed}) {
		t.Errorf("a push by a node: got %v", got)
	}
	if got := push(here); !slices.Equal(got, []int{http.StatusCreated, http.StatusCreated}) {
		t.Fatalf("a push: got %v", got)
	}
	if _, got := ask(t, http.MethodGet, here+"/v2/a/teapot/manifests/v1", "", ""); got != manifest || len(r.Pulled()) > 0 {
		t.Errorf("got %s, pulled %v", got, r.Pulled())
	}
	for path, want := range map[string]string{"/manifests/v1": manifest, "/manifests/" + sum(manifest): manifest, "/blobs/" + digest: blob} {
		if code, got := ask(t, http.MethodGet, there+"/v2/a/teapot"+path, "", ""); code != http.StatusOK || got != want {
			t.Errorf("%s: got %d, %s", path, code, got)
		}
	}
	if got := r.Pulled(); !slices.Equal(got, []string{"a/teapot:v1"}) {
		t.Errorf("pulled %v", got)
	}

	if err := r.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	if response, err := http.Get(here + "/v2/"); err == nil { //nolint:noctx // the connection fails
		response.Body.Close()
		t.Error("the registry still answers")
	}
}

func sum(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

func TestAnAddressThatIsNotOfThisMachine(t *testing.T) {
	r := &Registry{pulled: map[string]bool{}}
	_, err := r.serve("127.0.0.1", "203.0.113.77")
	if err == nil || !strings.Contains(err.Error(), "starting the registry for the nodes: ") {
		t.Errorf("got %v", err)
	}
	if err := r.stop(t.Context()); err != nil {
		t.Error(err)
	}
}
