package binaries

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheShareOfABuild(t *testing.T) {
	g := NewWithT(t)
	planned, built := &goLog{prefix: "# "}, &goLog{}
	write := func(l *goLog, text string) {
		// As it comes: a line may be torn.
		for _, part := range []string{text[:len(text)/2], text[len(text)/2:]} {
			_, err := io.WriteString(l, part)
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
	write(planned, "go: downloading example.com/a v1.0.0\ngo: downloading example.com/b v1.0.0\n")
	g.Expect(share(planned, built)).To(Equal("2 modules downloaded"))
	write(planned, "\n#\n# internal/abi\n#\n\nmkdir -p $WORK/b001/\ncat >x << 'EOF' # internal\n# import config\npackagefile a=b\nEOF\n"+
		"\n#\n# example.com/a/v2\n#\n\n#\n# example.com/b-c\n#\n#\n# command-line-arguments\n#\n")
	planned.done()
	g.Expect(share(planned, built)).To(Equal("0 of 4 packages, 0 %"))
	write(built, "internal/abi\nexample.com/a/v2\nexample.com/b-c\n# example.com/b-c\n./b.go:3:1: syntax error: x\n")
	g.Expect(share(planned, built)).To(Equal("3 of 4 packages, 75 %"))
	g.Expect(built.end()).To(Equal("# example.com/b-c\n./b.go:3:1: syntax error: x"))
	write(built, "command-line-arguments\n")
	g.Expect(share(planned, built)).To(Equal("linking"))
}

// The go command itself names as many packages before a build as during it.
func TestWhatIsPlannedIsWhatIsBuilt(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.com/" + filepath.Base(dir) + "\n\ngo 1.26\n", "main.go": "package main\n\nimport _ \"example.com/" + filepath.Base(dir) + "/a\"\n\nfunc main() {}\n",
		"a/a.go": "package a\n\nconst A = `" + dir + "`\n",
	} {
		path := filepath.Join(dir, name)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o644)).To(Succeed())
	}
	args := []string{"-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, "program"), "."}
	planned, built := &goLog{prefix: "# "}, &goLog{}
	g.Expect(niceGo(t.Context(), dir, nil, planned, append([]string{"build", "-n"}, args...)...)).To(Succeed())
	g.Expect(niceGo(t.Context(), dir, nil, built, append([]string{"build", "-v"}, args...)...)).To(Succeed())
	g.Expect(built.packages).To(BeNumerically(">=", 2))
	g.Expect(planned.packages).To(Equal(built.packages))
}
