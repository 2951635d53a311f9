package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withGo runs learn.sh with a program in place of go.
func withGo(t *testing.T, program string, args ...string) (int, string) {
	t.Helper()
	root := t.TempDir()
	script, err := os.ReadFile("../learn.sh")
	must(t, err)
	must(t, files{"scripts/learn.sh": script, "path/go": []byte(program)}.write(root))
	for _, file := range []string{"scripts/learn.sh", "path/go"} {
		must(t, os.Chmod(filepath.Join(root, file), 0o755))
	}
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{filepath.Join(root, "scripts/learn.sh")}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(root, "path")+":"+os.Getenv("PATH"))
	return ran(t, cmd)
}

func ran(t *testing.T, cmd *exec.Cmd) (int, string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestScriptWithAnOlderGo(t *testing.T) {
	t.Parallel()
	code, text := withGo(t, "#!/bin/sh\necho 'go: go.work requires go >= 1.26.0 (running go 1.25.0; GOTOOLCHAIN=local)' >&2\nexit 1\n", "run", "04a")
	expect(t, "an older go", code, exitCannot, text, "==> building the runner, once", "requires go >= 1.26.0", "the runner cannot be built")
}

func TestScriptKeepsTheExitCode(t *testing.T) {
	t.Parallel()
	code, text := withGo(t, "#!/bin/sh\nmkdir -p bin\nprintf '#!/bin/sh\\necho \"asked: $*\"\\nexit 1\\n' >bin/learn\nchmod +x bin/learn\n", "run", "04a")
	expect(t, "a check that is red", code, exitNotYet, text, "asked: run 04a")
}

func TestMakeHandsOverTheArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"09a"}, {"run", "09a"}, {"help"}, {"list"}, {"adopt", "04b", "wide"}, {"test"}} {
		cmd := exec.CommandContext(t.Context(), "make", append([]string{"-n", "learn"}, args...)...)
		cmd.Dir = "../.."
		cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
			return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS")
		})
		code, text := ran(t, cmd)
		want := "exec scripts/learn.sh " + strings.Join(args, " ") + "\n"
		expect(t, "make learn "+strings.Join(args, " "), code, 0, text, want)
		if strings.Contains(text, "scripts/test.sh") {
			t.Errorf("make learn %v runs another target:\n%s", args, text)
		}
	}
}
