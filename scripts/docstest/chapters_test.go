package docstest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tryoutMakefile has what the runner needs of the repository's: an end of a cluster, which leaves a mark.
const tryoutMakefile = "cluster-delete:\n\t@echo $(CLUSTER_NAME) >> $(MARK)\n"

// tryout is a repository with chapters of its own, which the runner of this package is let loose on.
type tryout struct {
	dir, mark, out string
}

// newTryout makes one of the chapters that are given by name; ~ in their texts stands for the fence of a block.
func newTryout(t *testing.T, chapters map[string]string) *tryout {
	t.Helper()
	b := &tryout{dir: t.TempDir()}
	b.mark, b.out = filepath.Join(b.dir, "mark"), filepath.Join(b.dir, "out")
	repository := filepath.Join(b.dir, "repository")
	files := map[string]string{"Makefile": tryoutMakefile, ".gitignore": "_artifacts/\n"}
	for _, script := range []string{"copy-tree.sh", "files.sh"} {
		text, err := os.ReadFile(filepath.Join("..", script))
		if err != nil {
			t.Fatal(err)
		}
		files["scripts/"+script] = string(text)
	}
	for name, text := range chapters {
		files["docs/"+name+".md"] = strings.ReplaceAll(text, "~", fence)
	}
	for name, text := range files {
		file := filepath.Join(repository, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run(t.Context(), t, repository, "git", "init", "--quiet")
	return b
}

// command runs TestChapters on it in a process of its own, started by the words before it.
func (b *tryout) command(t *testing.T, before ...string) *exec.Cmd {
	t.Helper()
	words := append(before, os.Args[0], "-test.run=^TestChapters$", "-test.v", "-test.timeout=10m")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "DOCS_CLUSTER=embedded", "CLUSTER_NAME=the-reader-s", "DOCS_CLUSTER_NAME=book", "MARK="+b.mark, "PIDS="+b.dir+"/pids",
		"DOCS_ROOT="+filepath.Join(b.dir, "repository"), "DOCS_LANES=1")
	out, err := os.Create(b.out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	cmd.Stdout, cmd.Stderr = out, out
	return cmd
}

func (b *tryout) read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(content)
}

func TestOneChapterIsChosen(t *testing.T) {
	t.Parallel()
	for wish, want := range map[string]string{
		"02": "RUN   TestChapters/02-y", "": "RUN   TestChapters/01-x", "99": "CHAPTER=99: there is no such chapter; there are 01-x, 02-y",
	} {
		b := newTryout(t, map[string]string{"01-x": "~sh\ntrue\n~\n", "02-y": "~sh\ntrue\n~\n"})
		cmd := b.command(t)
		cmd.Env = append(cmd.Env, "DOCS_CHAPTER="+wish)
		err := cmd.Run()
		out := b.read(t, b.out)
		if !strings.Contains(out, want) || (err == nil) != (wish != "99") {
			t.Errorf("CHAPTER=%s: want %q, got %v:\n%s", wish, want, err, out)
		}
		if wish == "02" && strings.Contains(out, "01-x") {
			t.Errorf("CHAPTER=02 runs another chapter:\n%s", out)
		}
	}
}

func TestChaptersAreRun(t *testing.T) {
	t.Parallel()
	b := newTryout(t, map[string]string{
		"01-variables": `
~sh
mkdir -p folder && cd folder
plain='two words'
list=(a 'b c')
export exported=yes
readonly fixed=1
~

~sh
pwd | sed 's/.*repository//'
echo "$plain, ${list[1]}, $exported, ${fixed-not kept}"
bash -c 'echo "${plain-not exported} $exported"'
unset exported plain
~

~console
/folder
two words, b c, yes, not kept
not exported yes
~

~sh
echo "${exported-gone} and ${plain-gone}"
~

~console
gone and gone
~
`,
		"02-a-terminal-that-ends": `
~sh terminal=other until="that is all"
echo that is all
~

~sh fails
false
~

~sh kind
exit 1
~
`,
		"03-nothing": "~text\nnot run\n~\n",
	})
	err := b.command(t).Run()
	out := b.read(t, b.out)
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, want := range []string{`01-variables +[0-9.]+ +3 +0 +ok\n`, `02-a-terminal-that-ends +[0-9.]+ +2 +1 +ok\n`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if mark := b.read(t, b.mark); mark != strings.Repeat("book\n", 2) {
		t.Errorf("want a cluster deleted after each of two chapters, got %q", mark)
	}
}

func TestFailuresTellWhere(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"a command": {"# X\n\n~sh\ntrue\necho before\nls /none | cat\necho never\n~\n",
			"docs/01-x.md:6: this was to succeed, and ended with \"exit status 2\":\n\tls /none | cat\nthe block printed:\n\tbefore\n\tls: "},
		"an output": {"~sh\necho a\necho b\n~\n\n~console\na\n\nc\n~\n",
			"docs/01-x.md:9: the chapter shows\n\tc\nand this was printed:\n\tb\nall that the chapter shows:\n\ta\n\t\n\tc\nall that was printed:\n\ta\n\tb"},
		"another terminal": {"~sh terminal=other until=\"at work\"\necho at work; echo oops; sleep 300\n~\n\n~sh\nsleep 1; false\n~\n",
			"docs/01-x.md:6: this was to succeed, and ended with \"exit status 1\":\n\tsleep 1; false\nthe block printed:\n\t\nterminal other shows:\n\tat work\n\toops"},
		"no error": {"~sh fails\necho a\n~\n", "docs/01-x.md:2: the block was to end with an error, and did not:\n\techo a\nit printed:\n\ta"},
		"a terminal": {"\n~sh terminal=other until=\"at work\"\necho not so; exit 3\n~\n",
			"docs/01-x.md:3: \"at work\" was to be seen in terminal other, and it ended before (exit status 3)\nterminal other shows:\n\tnot so"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTryout(t, map[string]string{"01-x": test.text})
			err := b.command(t).Run()
			// testscript and go test indent what they print.
			out := unindented(b.read(t, b.out))
			if err == nil || !strings.Contains(out, unindented(test.want)) {
				t.Errorf("%v: want\n%s\nin\n%s", err, test.want, out)
			}
			place, _, _ := strings.Cut(test.want, ": ")
			if !strings.Contains(out, "FAILED at "+place+"\n") {
				t.Errorf("the summary does not say FAILED at %s:\n%s", place, out)
			}
		})
	}
}

func unindented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimLeft(line, " \t"))
	}
	return out.String()
}

// TestNothingStaysBehind ends a run in the middle, and looks for what it had started.
func TestNothingStaysBehind(t *testing.T) {
	t.Parallel()
	chapter := map[string]string{
		"01-x": "~sh terminal=other until=\"at work\"\necho $$ >> $PIDS; echo at work; sleep 300\n~\n\n~sh\necho $$ >> $PIDS; sleep 300\n~\n",
		"02-y": "~sh\necho too late >> $PIDS\n~\n",
	}
	for name, test := range map[string]struct {
		before []string // what starts the run
		signal syscall.Signal
		says   string
	}{
		"SIGTERM":         {nil, syscall.SIGTERM, "the run was ended here: signal: terminated"},
		"Ctrl-C":          {nil, syscall.SIGINT, "the run was ended here: signal: interrupt"},
		"go test is gone": {[]string{"sh", "-c", `"$@" & wait`, "sh"}, syscall.SIGKILL, "the run was ended here: go test is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTryout(t, chapter)
			cmd := b.command(t, test.before...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
			pids := filepath.Join(b.dir, "pids")
			within(t, "both terminals are at work", func() bool { return len(strings.Fields(b.read(t, pids))) == 2 })
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			within(t, "the run says why it ended", func() bool { return strings.Contains(b.read(t, b.out), "\nFAIL\n") })
			if out := b.read(t, b.out); !strings.Contains(out, test.says) {
				t.Errorf("%q is not in\n%s", test.says, out)
			}
			if mark := b.read(t, b.mark); mark != "book\n" {
				t.Errorf("the cluster is still there: %q", mark)
			}
			for pid := range strings.FieldsSeq(b.read(t, pids)) {
				if err := exec.CommandContext(t.Context(), "ps", "-p", pid).Run(); err == nil {
					t.Errorf("process %s is still there", pid)
				}
			}
		})
	}
}

// within waits until something is so.
func within(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for !so() {
		select {
		case <-deadline:
			t.Fatalf("not so after two minutes: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestCacheSeesTheWholeRepository: Go's cache of results sees no change of a file outside the module, as the chapters are.
// It does see a variable that a test reads, and scripts/test.sh sets this one to the sum of all files. The target that runs
// the chapters uses no cache.
func TestCacheSeesTheWholeRepository(t *testing.T) {
	t.Parallel()
	_ = os.Getenv("REPOSITORY_SUM")
	for file, want := range map[string]string{
		"../test.sh":     "export REPOSITORY_SUM",
		"../../Makefile": "go -C scripts/docstest test -count=1 ",
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(content, []byte(want)) {
			t.Errorf("%s has no %q", filepath.Base(file), want)
		}
	}
}
