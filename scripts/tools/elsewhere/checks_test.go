package elsewhere

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A name with a quote in it must hide neither its file nor those after it.
func TestChecksReadFilesOfAnyName(t *testing.T) {
	for _, name := range []string{"it's.txt", `a "b".txt`, "a b.txt"} {
		dir := t.TempDir()
		copyTo(t, dir, "scripts/verify-layout.sh", "scripts/files.sh")
		file := filepath.Join(dir, "docs", name)
		if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("see /home/"+"me/x\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if output, err := run(t, dir, nil, "git", "init", "--quiet"); err != nil {
			t.Fatal(output, err)
		}
		if output, err := run(t, dir, nil, "scripts/verify-layout.sh"); err == nil || !strings.Contains(output, name) {
			t.Errorf("%s: got %v, want a failure that names it:\n%s", name, err, output)
		}
	}
}

// A link of a file with a blank in its name is checked too, and a name with a line break is said to be one.
func TestLinksOfFilesOfAnyName(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, "scripts", "go.work")
	if output, err := run(t, dir, nil, "git", "init", "--quiet"); err != nil {
		t.Fatal(output, err)
	}
	for name, want := range map[string]string{"it's a.md": "it's a.md", "a\nb.md": "line break"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("[x](nowhere.md)\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if output, err := run(t, dir, nil, "scripts/verify-links.sh"); err == nil || !strings.Contains(output, want) {
			t.Errorf("%q: got %v, want a failure that says %q:\n%s", name, err, want, output)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// GNU's xargs calls a program once for each 128 KiB of names, that of busybox more often.
func TestWordsAreCheckedAtOnceWhateverXargsTakes(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	copyTo(t, dir, "scripts")
	err := os.WriteFile(filepath.Join(bin, "xargs"), []byte("#!/bin/sh\nPATH=${PATH#*:}\nexec xargs -n 1 \"$@\"\n"), 0o700)
	if output, gitErr := run(t, dir, nil, "git", "init", "--quiet"); errors.Join(err, gitErr) != nil {
		t.Fatal(err, gitErr, output)
	}
	one, _ := run(t, dir, nil, "scripts/verify-words.sh")
	many, _ := run(t, dir, []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, "scripts/verify-words.sh")
	if one != many {
		t.Errorf("got\n%s\nwith a short list of arguments, want\n%s", many, one)
	}
}

// A vulnerability is none the less one if its report has the words of a network that is down.
func TestVulnFailsOnAVulnerability(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, "scripts/vuln.sh")
	bin := t.TempDir()
	program := "#!/bin/sh\n[ \"$1\" != list ] || { echo .; exit; }\necho 'Fixed in: not available'\n" +
		"[ $CODE = 0 ] || { echo \"exit status $CODE\" >&2; exit 1; } # as go run does\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	for code, fails := range map[string]bool{"0": false, "1": false, "3": true} {
		output, err := run(t, dir, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "CODE=" + code}, "scripts/vuln.sh")
		if (err != nil) != fails {
			t.Errorf("govulncheck ends with %s: got %v:\n%s", code, err, output)
		}
	}
}

// What go mod vendor and go work vendor have copied is other people's, whatever is in it.
func TestChecksLeaveVendorFoldersAlone(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, "scripts/verify-layout.sh", "scripts/files.sh")
	for _, folder := range []string{"vendor/example.org/x", "02-lolcow/vendor"} {
		path := filepath.Join(dir, folder)
		if err := errors.Join(os.MkdirAll(path, 0o700), os.WriteFile(filepath.Join(path, "x.md"), []byte("see /home/"+"me/x\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := run(t, dir, nil, "git", "init", "--quiet"); err != nil {
		t.Fatal(output, err)
	}
	if output, err := run(t, dir, nil, "scripts/verify-layout.sh"); err != nil {
		t.Errorf("got %v:\n%s", err, output)
	}
	for _, patterns := range [][]string{nil, {"*.md"}} {
		if err := os.WriteFile(filepath.Join(dir, "02-lolcow", "ours.md"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if output, err := run(t, filepath.Join(dir, "02-lolcow"), []string{"GIT_CEILING_DIRECTORIES="}, append([]string{"../scripts/files.sh"}, patterns...)...); err != nil || output != "ours.md\n" {
			t.Errorf("files.sh %q: got %v: %s", patterns, err, output)
		}
	}
}
