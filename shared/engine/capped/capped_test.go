package capped

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestFile(t *testing.T) {
	inBundle, inProcess := []string{"process", "capabilities"}, []string{"capabilities"}
	for name, row := range map[string]struct {
		args []string
		file string
		path []string
	}{
		"create": {
			[]string{"--root", "/run/r", "--log", "/x/log.json", "create", "--bundle", "/x/b", "--pid-file", "/x/init.pid", "id"},
			"/x/b/config.json", inBundle,
		},
		"create, joined": {[]string{"create", "--bundle=/x/b", "id"}, "/x/b/config.json", inBundle},
		"run, short":     {[]string{"run", "-b", "/x/b", "id"}, "/x/b/config.json", inBundle},
		"exec":           {[]string{"--root", "/run/r", "exec", "--process", "/tmp/p1", "--detach", "id"}, "/tmp/p1", inProcess},
		"exec, joined":   {[]string{"exec", "--process=/tmp/p1", "id"}, "/tmp/p1", inProcess},
		"start":          {[]string{"--root", "/run/r", "start", "id"}, "", nil},
		"kill":           {[]string{"kill", "--all", "id", "9"}, "", nil},
		"no arguments":   {nil, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file, path := File(row.args)
			g.Expect(file).To(Equal(row.file))
			g.Expect(path).To(Equal(row.path))
		})
	}
}

func TestLimit(t *testing.T) {
	allowed := func(name string) bool { return name != "CAP_SYS_RESOURCE" }
	bundle := []string{"process", "capabilities"}
	for name, row := range map[string]struct {
		path       []string
		spec, want string
	}{
		"a container": {
			bundle,
			`{"ociVersion":"1.0.2","process":{"user":{"uid":0},"capabilities":{"bounding":["CAP_CHOWN","CAP_SYS_RESOURCE"],"effective":["CAP_SYS_RESOURCE"]}},"linux":{"resources":{"memory":{"limit":9223372036854775807}}}}`,
			`{"ociVersion":"1.0.2","process":{"user":{"uid":0},"capabilities":{"bounding":["CAP_CHOWN"],"effective":[]}},"linux":{"resources":{"memory":{"limit":9223372036854775807}}}}`,
		},
		"a process": {
			[]string{"capabilities"},
			`{"args":["sh"],"capabilities":{"permitted":["CAP_SYS_RESOURCE","CAP_NET_ADMIN"]}}`,
			`{"args":["sh"],"capabilities":{"permitted":["CAP_NET_ADMIN"]}}`,
		},
		"nothing to remove":    {[]string{"capabilities"}, `{"capabilities":{"bounding":["CAP_CHOWN"]}}`, `{"capabilities":{"bounding":["CAP_CHOWN"]}}`},
		"no capabilities":      {[]string{"capabilities"}, `{"args":["sh"]}`, `{"args":["sh"]}`},
		"capabilities of null": {[]string{"capabilities"}, `{"capabilities":null}`, `{"capabilities":null}`},
		"no process":           {bundle, `{"ociVersion":"1.0.2"}`, `{"ociVersion":"1.0.2"}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := Limit([]byte(row.spec), row.path, allowed)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(MatchJSON(row.want))
		})
	}
}

// A memory limit of "none" is a number that does not survive being read as a float.
func TestLimitKeepsLargeNumbers(t *testing.T) {
	g := NewWithT(t)
	spec := `{"process":{"capabilities":{}},"linux":{"resources":{"memory":{"limit":9223372036854775807}}}}`
	got, err := Limit([]byte(spec), []string{"process", "capabilities"}, func(string) bool { return true })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).To(ContainSubstring("9223372036854775807"))
}

func TestLimitRefusesWhatIsNotASpecification(t *testing.T) {
	g := NewWithT(t)
	_, err := Limit([]byte("not JSON"), []string{"capabilities"}, func(string) bool { return true })
	g.Expect(err).To(MatchError(ContainSubstring("container specification")))
	_, err = Limit([]byte(`{"capabilities":["CAP_CHOWN"]}`), []string{"capabilities"}, func(string) bool { return true })
	g.Expect(err).To(MatchError(ContainSubstring("capabilities")))
}

func TestLimitFileKeepsTheMode(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "config.json")
	g.Expect(os.WriteFile(file, []byte(`{"capabilities":{"bounding":["CAP_CHOWN"]}}`), 0o644)).To(Succeed())
	g.Expect(LimitFile(file, []string{"capabilities"}, func(string) bool { return false })).To(Succeed())
	got, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(MatchJSON(`{"capabilities":{"bounding":[]}}`))
	info, err := os.Stat(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o644)))
}
