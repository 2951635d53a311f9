package elsewhere

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// flaky fails as often as FAILS says, in its subtest, and passes then.
const flaky = `package flaky

import (
	"os"
	"strings"
	"testing"
)

func TestFlaky(t *testing.T) {
	t.Run("sub", func(t *testing.T) {
		tried, _ := os.ReadFile("tried")
		_ = os.WriteFile("tried", append(tried, 'x'), 0o600)
		if len(tried) < len(os.Getenv("FAILS")) {
			t.Fatal("not this time")
		}
	})
}

func TestArgs(t *testing.T) {
	if !strings.Contains(strings.Join(os.Args, " "), " an-argument") {
		t.Fatal(os.Args)
	}
}
`

// A test that passes the second time must not hold up everything, and must not be forgotten.
func TestGoTestNamesWhatIsFlaky(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(root, "scripts", "go-test.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		fails           string
		passes, isFlaky bool
	}{{"", true, false}, {"x", true, true}, {"xx", false, false}} {
		dir := filepath.Join(t.TempDir(), "a module")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"go.mod": "module flaky\n\ngo 1.26\n", "flaky_test.go": flaky} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		report := filepath.Join(dir, "flaky")
		output, err := run(t, dir, []string{"GOWORK=off", "FLAKY_TESTS=" + report, "FAILS=" + test.fails}, script, "-count=1", "./...", "-args", "an-argument")
		if (err == nil) != test.passes {
			t.Errorf("%q failures: got %v, want success %t:\n%s", test.fails, err, test.passes, output)
		}
		if strings.Contains(output, "not this time") != (test.fails != "") {
			t.Errorf("%q failures: what the test said:\n%s", test.fails, output)
		}
		named, _ := os.ReadFile(report)
		if strings.Contains(string(named), "TestFlaky") != test.isFlaky || strings.Contains(output, "FLAKY: flaky.TestFlaky") != test.isFlaky {
			t.Errorf("%q failures: want it named %t, got %q:\n%s", test.fails, test.isFlaky, named, output)
		}
	}
}
