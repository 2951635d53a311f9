package exercise

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// target is something that a check looks at: the reader's folder, a start, a solution or a mutant.
type target struct {
	key      string
	exercise Exercise
	dir      string
}

// programDir is the folder of the program below the module. It is there for the compiler only, by an overlay.
const programDir = "zz-program"

// program is the main function that runs the checks. It is made anew for each build.
var program = template.Must(template.New("").Parse(`// Code generated for one run of checks. DO NOT EDIT.

package main

import (
	"example.com/workbook/shared/exercise/check"
{{range .Imports}}
	{{.Alias}} "{{.Path}}"
{{- end}}
)

func main() {
	check.Main(map[string]func(*check.T){
{{- range .Checks}}
		"{{.Key}}": func(t *check.T) {
			{{.Check}}.Check(t, check.Work[{{if .Entry}}{{.Check}}.Entry{{else}}check.Files{{end}}]{Dir: {{printf "%q" .Dir}}
			{{- if .Entry}}, Entry: {{.Work}}.{{.Entry}}{{end}}})
		},
{{- end}}
	})
}
`))

type importLine struct{ Alias, Path string }

type checkLine struct{ Key, Check, Work, Entry, Dir string }

// source returns the program for these targets, which are all of one module.
func source(module string, targets []target) ([]byte, error) {
	path, err := modulePath(module)
	if err != nil {
		return nil, err
	}
	var data struct {
		Imports []importLine
		Checks  []checkLine
	}
	alias := map[string]string{}
	imported := func(prefix, dir string) (string, error) {
		rel, err := filepath.Rel(module, dir)
		if err != nil || !filepath.IsLocal(rel) {
			return "", fmt.Errorf("%s is not in the module %s", dir, module)
		}
		if alias[rel] == "" {
			alias[rel] = fmt.Sprintf("%s%d", prefix, len(alias))
			data.Imports = append(data.Imports, importLine{alias[rel], path + "/" + filepath.ToSlash(rel)})
		}
		return alias[rel], nil
	}
	for _, t := range targets {
		line := checkLine{Key: t.key, Entry: t.exercise.Entry, Dir: t.dir}
		if line.Check, err = imported("check", t.exercise.Dir); err != nil {
			return nil, err
		}
		if line.Entry != "" {
			if line.Work, err = imported("work", t.dir); err != nil {
				return nil, err
			}
		}
		data.Checks = append(data.Checks, line)
	}
	var out bytes.Buffer
	err = program.Execute(&out, data)
	return out.Bytes(), err
}

// Not golang.org/x/mod: a copy of a stage is without this package, and its go.mod would require what nothing there imports.
var moduleLine = regexp.MustCompile(`(?m)^module\s+(\S+)`)

func modulePath(dir string) (string, error) {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	match := moduleLine.FindSubmatch(content)
	if match == nil {
		return "", fmt.Errorf("%s/go.mod names no module", dir)
	}
	return string(match[1]), nil
}

// compileError is what the compiler says about the reader's code.
type compileError struct{ text string }

func (e *compileError) Error() string { return e.text }

// build compiles a program for the targets and returns its path below temp. A *compileError is the reader's to correct.
func build(ctx context.Context, temp, module string, targets []target, race bool, flags ...string) (string, error) {
	code, err := source(module, targets)
	if err != nil {
		return "", err
	}
	main, overlay, binary := filepath.Join(temp, "main.go"), filepath.Join(temp, "overlay.json"), filepath.Join(temp, "check")
	virtual := filepath.Join(module, programDir, "main.go")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {virtual: main}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(main, code, 0o600), os.WriteFile(overlay, replaced, 0o600)); err != nil {
		return "", err
	}
	// Without the tables for debuggers the linker is done sooner; the lines of a panic are there all the same.
	args := []string{"build", "-overlay", overlay, "-ldflags=-s -w", "-buildvcs=false", "-o", binary}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(append(args, flags...), "./"+programDir)...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if race {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	output, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return binary, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case !isExit(err) || aboutTheMachine.Match(output):
		return "", fmt.Errorf("go build: %w\n%s", err, bytes.TrimSpace(output))
	}
	return "", &compileError{readable(module, main, targets[0], string(output))}
}

// canRace says whether there is the C compiler that the race detector needs.
func canRace() bool {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	_, err := exec.LookPath(cc)
	return err == nil
}

func isExit(err error) bool {
	_, ok := errors.AsType[*exec.ExitError](err)
	return ok
}

// aboutTheMachine finds what no change of the reader's code corrects.
var aboutTheMachine = regexp.MustCompile(`requires go >=|toolchain not available|no space left on device|read-only file system|permission denied|` +
	`signal: killed|cannot allocate memory|dial tcp|proxyconnect`)

// readable leaves of the compiler's output what the reader needs, with the names of files as the reader knows them.
func readable(module, main string, t target, output string) string {
	var lines []string
	rel, err := filepath.Rel(module, t.dir)
	for line := range strings.Lines(output) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "# ") {
			continue
		}
		if err == nil {
			line = strings.ReplaceAll(line, rel+string(filepath.Separator), "")
		}
		if _, rest, found := strings.Cut(line, filepath.Base(filepath.Dir(main))+"/main.go:"); found {
			_, text, _ := strings.Cut(rest, ": ")
			line = fmt.Sprintf("the check uses %s: %s", t.exercise.Entry, aliases.ReplaceAllString(text, ""))
		}
		lines = append(lines, line)
	}
	if strings.Contains(output, "build constraints exclude all Go files") {
		lines = append(lines, "your file begins with a line //go:build, as the one in the exercise's own folder does: delete that line")
	}
	return strings.Join(lines, "\n")
}

var aliases = regexp.MustCompile(`\b(work|check)\d+\.`)

// missing says that there is nothing to compile, or returns an empty string.
func missing(t target) string {
	if t.exercise.Entry == "" {
		if _, err := os.Stat(t.dir); errors.Is(err, fs.ErrNotExist) {
			return "the folder is not there: " + t.dir
		}
		return ""
	}
	files, err := filepath.Glob(filepath.Join(t.dir, "*.go"))
	if err != nil || !slices.ContainsFunc(files, func(file string) bool { return !strings.HasSuffix(file, "_test.go") }) {
		return "no Go file is in " + t.dir
	}
	return ""
}
