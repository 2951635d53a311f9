package elsewhere

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Git for Windows sets core.autocrlf, and a folder that it has cloned is also used from Linux: "/bin/sh^M: bad interpreter".
func TestACloneHasScriptsThatAShellTakes(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, ".gitattributes", "scripts/stage.sh")
	for _, words := range [][]string{
		{"git", "init", "--quiet"}, {"git", "add", "."},
		{"git", "-c", "core.autocrlf=true", "checkout-index", "--all", "--prefix=clone/"},
	} {
		if output, err := run(t, dir, nil, words...); err != nil {
			t.Fatalf("%q: %v: %s", words, err, output)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "clone", "scripts", "stage.sh"))
	if err != nil || strings.Contains(string(content), "\r") {
		t.Errorf("%v, %.20q, want lines that end with a line feed alone", err, content)
	}
}
