package elsewhere

import (
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stages are the folders of the repository's stages.
func stages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "0[1-4]-*"))
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return found
}

// recorder is a go command that writes down what it is called with, one word a line, and makes the file that -o names.
const recorder = `#!/bin/sh
echo "CGO_ENABLED=$CGO_ENABLED" >>"$RECORD"
for word in "$@"; do
  printf '%s\n' "$word" >>"$RECORD"
  [ "$before" != -o ] || { mkdir -p "$(dirname "$word")" && : >"$word" && chmod +x "$word"; }
  before=$word
done
`

// recorded runs a target of a stage with the recorder for go, and returns the words.
func recorded(t *testing.T, stage string, words ...string) []string {
	t.Helper()
	bin := t.TempDir()
	record := filepath.Join(bin, "record")
	if err := errors.Join(os.WriteFile(record, nil, 0o600), os.WriteFile(filepath.Join(bin, "go"), []byte(recorder), 0o700)); err != nil {
		t.Fatal(err)
	}
	variables := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "RECORD=" + record}
	output, err := run(t, stage, variables, append([]string{"sh", "-c", `umask 077; exec "$@"`, "sh", "make", "ARCH=amd64"}, words...)...)
	if err != nil {
		t.Fatalf("make %s: %v: %s", strings.Join(words, " "), err, output)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestTargetsOfAStageTakeAnyPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's a $folder")
	copyTo(t, dir, "shared/go.mod", "scripts/harness.mk")
	for _, stage := range stages(t) {
		copyTo(t, dir, filepath.Join(stage, "Makefile"))
		stage = filepath.Join(dir, stage)
		for _, target := range []string{"install", "run", "deploy", "undeploy", "uninstall"} {
			words := recorded(t, stage, target)
			at := slices.Index(words, "--stage")
			if at < 0 || at+1 == len(words) || words[at+1] != stage {
				t.Errorf("make %s of %s: %q, want the stage's folder after --stage", target, filepath.Base(stage), words)
			}
		}
	}
}

func TestFaultsReplayAFileOfAnyPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder")
	copyTo(t, dir, "shared/go.mod", "scripts/harness.mk")
	for _, stage := range stages(t) {
		copyTo(t, dir, filepath.Join(stage, "Makefile"), filepath.Join(stage, "test/e2e/go.mod"))
		stage = filepath.Join(dir, stage)
		if makefile, err := os.ReadFile(filepath.Join(stage, "Makefile")); err != nil || !strings.Contains(string(makefile), "\nfaults:") {
			continue
		}
		for given, want := range map[string]string{"_artifacts/x y.json": filepath.Join(stage, "_artifacts/x y.json"), dir + "/x.json": dir + "/x.json"} {
			if words := recorded(t, stage, "faults", "REPLAY="+given); !slices.Contains(words, "-replay="+want) {
				t.Errorf("make faults REPLAY=%q of %s: %q, want -replay=%s", given, filepath.Base(stage), words, want)
			}
		}
	}
}

// In an image the user is not the one who built the programs; and git may not tell what a clone of another owner holds.
func TestBuildLeavesProgramsForAnyUser(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder")
	for _, stage := range stages(t) {
		copyTo(t, dir, filepath.Join(stage, "Makefile"))
		stage = filepath.Join(dir, stage)
		words := recorded(t, stage, "build")
		builds := count(words, "build")
		if without := count(words, "-buildvcs=false"); builds == 0 || without != builds {
			t.Errorf("make build of %s: %d of %d builds ask nothing of git", filepath.Base(stage), without, builds)
		}
		programs, err := filepath.Glob(filepath.Join(stage, "bin", "linux-amd64", "*"))
		if err != nil || len(programs) != builds {
			t.Errorf("make build of %s made %v in %d builds, %v", filepath.Base(stage), programs, builds, err)
		}
		for _, program := range programs {
			if info, err := os.Stat(program); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("%s has the mode %v, %v, want 0755", program, info.Mode().Perm(), err)
			}
		}
	}
}

// Some distributions have -buildmode=pie in GOFLAGS, which asks for an interpreter that no image has; -race needs cgo.
func TestBuildIsStaticWhateverGOFLAGSAre(t *testing.T) {
	for _, stage := range stages(t) {
		dir := t.TempDir()
		copyTo(t, dir, filepath.Join(stage, "Makefile"))
		dir = filepath.Join(dir, stage)
		for file, content := range map[string]string{"go.mod": "module example.com/x\n\ngo 1.26\n", "cmd/main.go": "package main\n\nfunc main() {}\n"} {
			path := filepath.Join(dir, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		for _, flags := range []string{"-race", "-buildmode=pie"} {
			output, err := run(t, dir, []string{"GOWORK=off", "GOFLAGS=" + flags}, "make", "build", "PROGRAMS=")
			if err != nil {
				t.Errorf("GOFLAGS=%s make build of %s: %v\n%s", flags, stage, err, output)
				continue
			}
			programs, err := filepath.Glob(filepath.Join(dir, "bin", "*", "manager"))
			if err != nil || len(programs) != 1 {
				t.Fatal(programs, err)
			}
			program, err := elf.Open(programs[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range program.Progs {
				if part.Type == elf.PT_INTERP {
					t.Errorf("GOFLAGS=%s make build of %s: the program asks for an interpreter", flags, stage)
				}
			}
			if err := program.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Go compiles all packages a second time for a build with other flags than the tests'.
func TestTestsAndProgramsAreCompiledAlike(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, "shared/go.mod", "scripts/harness.mk")
	for _, stage := range stages(t) {
		copyTo(t, dir, filepath.Join(stage, "Makefile"), filepath.Join(stage, "test/e2e/go.mod"))
		for _, test := range []struct{ goals, cgo string }{
			{"build", "0"}, {"test", "0"}, {"run", "0"}, {"test TEST_FLAGS=-short", "0"}, {"test TEST_FLAGS=-race", "1"}, {"test CGO_ENABLED=1", "1"},
		} {
			words := recorded(t, filepath.Join(dir, stage), strings.Fields(test.goals)...)
			for _, word := range words {
				if word == "-trimpath" || strings.HasPrefix(word, "CGO_ENABLED=") && word != "CGO_ENABLED="+test.cgo {
					t.Errorf("make %s of %s has %s: %q", test.goals, stage, word, words)
				}
			}
		}
	}
}

// Older tutorials have /usr/local/kubebuilder/bin exported, which no longer exists: the harness knows where else to look.
func TestTheHarnessSaysWhereTheProgramsOfTheTestsAre(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, "shared/go.mod", "scripts/harness.mk")
	t.Setenv("KUBEBUILDER_ASSETS", "/usr/local/kubebuilder/bin")
	for _, stage := range stages(t) {
		copyTo(t, dir, filepath.Join(stage, "Makefile"), filepath.Join(stage, "test/e2e/go.mod"))
		if words := recorded(t, filepath.Join(dir, stage), "test"); count(words, "assets") == 0 {
			t.Errorf("make test of %s takes KUBEBUILDER_ASSETS as it is: %q", stage, words)
		}
	}
}

func count(words []string, word string) (n int) {
	for _, w := range words {
		if w == word {
			n++
		}
	}
	return n
}
