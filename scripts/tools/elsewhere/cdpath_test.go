package elsewhere

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// It may be unset together with others.
var unsetsCDPATH = regexp.MustCompile(`(?m)^unset CDPATH( |$)`)

// With CDPATH set, cd goes to another folder than the one that is named, or prints it into what is captured.
func TestScriptsDoNotFollowCDPATH(t *testing.T) {
	_ = os.Getenv("REPOSITORY_SUM")
	scripts, err := filepath.Glob(filepath.Join(root, "scripts", "*.sh"))
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	for _, script := range append(scripts, filepath.Join(root, ".ci", "run"), filepath.Join(root, "01-informers", "hack", "update-codegen.sh")) {
		content, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		before, _, changes := strings.Cut(string(content), "cd \"$")
		if changes && !unsetsCDPATH.MatchString(before) {
			t.Errorf("%s changes its folder before it unsets CDPATH", script)
		}
	}
}
