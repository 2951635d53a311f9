package elsewhere

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tester is a go command whose tests of the module in FAILS fail; it says which module it tests.
const tester = `#!/bin/sh
dir=.
[ "$1" != -C ] || { dir=$2; shift 2; }
[ "$1" = test ] || exit 0
module=$(basename "$(cd "$dir" && pwd)")
echo "tested $module"
[ "$module" != "$FAILS" ]
`

// Two stages are tested beside the others: their failures, and what their tests say, must not get lost.
func TestMakeTestTellsOfEveryModule(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a copy")
	copyTo(t, dir, "Makefile", "scripts", "shared/go.mod", "02-lolcow/exercises/go.mod")
	modules := []string{"shared", "exercises", "docssite", "docstest", "learn", "starter", "tools"}
	for _, stage := range stages(t) {
		copyTo(t, dir, filepath.Join(stage, "Makefile"), filepath.Join(stage, "test", "e2e", "go.mod"))
		modules = append(modules, stage)
	}
	bin, temp := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(tester), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, fails := range append(modules, "none") {
		output, err := run(t, dir, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "TMPDIR=" + temp, "FAILS=" + fails, "CI=", "CPU="}, "make", "test")
		for _, module := range modules {
			if strings.Count(output, "tested "+module+"\n") != 1 {
				t.Errorf("%s was not tested once:\n%s", module, output)
			}
		}
		_, failed, found := strings.Cut(output, "\nfailed: ")
		if found != (fails != "none") || found != (err != nil) || found && !strings.Contains(failed, fails) {
			t.Errorf("the tests of %s fail: got %v:\n%s", fails, err, output)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("it left %v, %v", left, err)
		}
	}
}
