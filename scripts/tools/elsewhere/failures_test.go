package elsewhere

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What CI says at its end of a log is all that most readers see of it.
func TestFailuresOfALog(t *testing.T) {
	long := strings.Repeat("    before\n", 30) + "    cause\n"
	for name, test := range map[string]struct {
		log   string
		want  []string
		never string
	}{
		"a test and its subtest": {
			"ok  \ta\t1s\n--- FAIL: TestX (0.1s)\n    --- FAIL: TestX/sub (0.1s)\n        x_test.go:9: got 3\nFAIL\tb\t1s\nok  \tc\t1s\n",
			[]string{"--- FAIL: TestX (0.1s)", "    --- FAIL: TestX/sub (0.1s)", "x_test.go:9: got 3", "FAIL\tb\t1s"},
			"ok",
		},
		"the end of what a test said":        {"--- FAIL: TestX (0.1s)\n" + long + "FAIL\tb\t1s\n", []string{"cause", "is in the log"}, ""},
		"the beginning of what a panic says": {"panic: nil map\n" + long + "FAIL\tb\t1s\n", []string{"panic: nil map", "FAIL\tb\t1s"}, "cause"},
		"a package that does not build":      {"# b\n./b.go:3:4: undefined: x\nFAIL\tb [build failed]\n", []string{"./b.go:3:4: undefined: x"}, ""},
		"specs":                              {"Summarizing 1 Failure:\n  [FAIL] a spec\nRan 2 of 3 Specs\nlater\n", []string{"[FAIL] a spec"}, "later"},
		"a linter":                           {strings.Repeat("fine\n", 40) + "b.go:3: not formatted\n", []string{"b.go:3: not formatted"}, ""},
	} {
		log := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(log, []byte(test.log), 0o600); err != nil {
			t.Fatal(err)
		}
		output, err := run(t, root, nil, filepath.Join(".ci", "failures.sh"), log)
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, output)
		}
		for _, want := range test.want {
			if !strings.Contains(output, want) {
				t.Errorf("%s: no %q in:\n%s", name, want, output)
			}
		}
		if test.never != "" && strings.Contains(output, test.never) {
			t.Errorf("%s: %q in:\n%s", name, test.never, output)
		}
		if lines := strings.Count(output, "\n"); lines > 25 {
			t.Errorf("%s: %d lines", name, lines)
		}
	}
}
