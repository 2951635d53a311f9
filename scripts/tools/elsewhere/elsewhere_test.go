// Package elsewhere tests what make and the scripts do in a repository that is not where and how this one is.
package elsewhere

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the repository.
const root = "../../.."

// copyTo copies parts of the repository to a folder, without .git.
func copyTo(t *testing.T, dest string, parts ...string) {
	t.Helper()
	_ = os.Getenv("REPOSITORY_SUM") // so that Go's cache of results sees a change of these files
	for _, part := range parts {
		target := filepath.Join(dest, part)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if output, err := exec.CommandContext(t.Context(), "cp", "-R", filepath.Join(root, part), target).CombinedOutput(); err != nil {
			t.Fatalf("copying %s: %v: %s", part, err, output)
		}
	}
}

// run runs a command in a folder, with these variables, and returns what it said.
func run(t *testing.T, dir string, variables []string, words ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = dir
	// make hands its variables to every make below it, and the repository's its own.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"HARNESS", "CGO_ENABLED", "TEST_FLAGS"}, name)
	})
	cmd.Env = append(cmd.Env, "MAKEFLAGS=", "MAKELEVEL=", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	cmd.Env = append(cmd.Env, variables...)
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// A script that finds no file to look at must not be content.
func TestScriptsFailWithoutARepository(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a copy")
	copyTo(t, dir, "scripts", "go.work", "README.md", "docs", "shared/config/harness.env", "03-flux")
	for _, words := range [][]string{
		{"scripts/verify-generated.sh"}, {"scripts/verify-layout.sh"}, {"scripts/verify-links.sh"}, {"scripts/verify-pins.sh"},
		{"scripts/verify-snippets.sh"}, {"scripts/verify-standalone.sh"}, {"scripts/verify-words.sh"},
		{"scripts/copy-tree.sh", "docs", filepath.Join(t.TempDir(), "x")},
	} {
		t.Run(filepath.Base(words[0]), func(t *testing.T) {
			output, err := run(t, dir, nil, words...)
			if err == nil || !strings.Contains(output, "not a git repository") || !strings.Contains(output, "run it in a git clone") {
				t.Errorf("got %v, want a failure that says why:\n%s", err, output)
			}
		})
	}
}

// Who works without workspaces has said so for all of Go. The programs of the repository are found all the same.
func TestMakeFindsItsProgramsWithoutAWorkspace(t *testing.T) {
	output, err := run(t, root, []string{"GOWORK=off", "STAGE=", "DEST="}, "make", "starter")
	if err == nil || !strings.Contains(output, "STAGE") || strings.Contains(output, "go.mod") {
		t.Errorf("got %v, want what is missing:\n%s", err, output)
	}
}

// Go's own advice, GOWORK=off, is none for what make calls.
func TestMakeSaysThatAWorkspaceTakesNoMod(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, "Makefile", "go.work", "scripts/harness.mk")
	for flags, fine := range map[string]bool{"": true, "-mod=readonly": true, "-mod=mod": false, "-trimpath -mod=vendor": false, "-modfile=x.mod": false} {
		output, err := run(t, dir, []string{"GOWORK=", "GOFLAGS=" + flags}, "make", "need-go")
		if fine && err != nil || !fine && (err == nil || !strings.Contains(output, "unset GOFLAGS")) {
			t.Errorf("GOFLAGS=%s: got %v: %s", flags, err, output)
		}
	}
}

// Posts of the years before modules advise GO111MODULE=off, and others to cross-compile by go env -w: what go then says, "no
// such tool" or, once all is compiled, "exec format error", names neither.
func TestMakeSaysWhichSettingOfGoIsInTheWay(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, "Makefile", "scripts/harness.mk")
	goenv := filepath.Join(dir, "goenv")
	for setting, advice := range map[string]string{
		"": "", "GO111MODULE=auto": "", "GO111MODULE=off": "go env -u GO111MODULE", "GOOS=plan9": "go env -u GOOS", "GOARCH=s390x": "go env -u GOOS",
	} {
		if err := os.WriteFile(goenv, []byte(setting+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		output, err := run(t, dir, []string{"GOENV=" + goenv, "GOFLAGS=", "GOOS=", "GOARCH="}, "make", "need-go")
		if (err == nil) != (advice == "") || !strings.Contains(output, advice) {
			t.Errorf("%s: got %v: %s, want %q", setting, err, output, advice)
		}
	}
}
