// Command starter copies a stage of the workbook out as a project of the reader's own, with the
// harness inside and with every name of the stage replaced. `make starter` runs it; the options come
// from the environment (see usage).
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	err := run(ctx, optionsFromEnv())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "starter:", err)
		os.Exit(1)
	}
}

// readersEnv sets GOWORK to what it was when the reader called make, which has set it to find this program.
func readersEnv() error {
	workspace, given := os.LookupEnv("READER_GOWORK")
	if !given {
		return nil
	}
	return errors.Join(os.Unsetenv("READER_GOWORK"), os.Setenv("GOWORK", workspace))
}

func run(ctx context.Context, o options) error {
	if err := readersEnv(); err != nil {
		return err
	}
	repo, err := repository()
	if err != nil {
		return err
	}
	if err := o.check(repo); err != nil {
		return err
	}
	if err := unclaimed(ctx, o); err != nil {
		return err
	}
	s, err := findStage(ctx, repo, o.Stage)
	if err != nil {
		return err
	}
	if err := produce(ctx, repo, o, s); err != nil {
		return err
	}
	fmt.Printf("%s is ready: %s, API group %s. Its README.md says how to go on.\n", o.Dest, o.Kind, o.Domain)
	if !o.Verify {
		return nil
	}
	return verify(ctx, o)
}

// repository is the root of the repository that this is run in. git may call another folder so, or none.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "shared", "config", "harness.env")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("finding the repository: no folder above this one holds the harness; run make starter at the top of the workbook")
		}
	}
}

// produce writes the copy beside Dest and moves it there when it is complete: if anything fails,
// nothing is left.
func produce(ctx context.Context, repo string, o options, s *stage) (err error) {
	keep, err := compile(s.hints.Keep)
	if err != nil {
		return fmt.Errorf("%s/hack/starter.yaml: %w", s.dir, err)
	}
	r := newRenamer(s.names(o), keep)
	if err := free(repo, o, s, r); err != nil {
		return err
	}
	origins, err := plan(ctx, repo, s)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(o.Dest), "."+filepath.Base(o.Dest)+".starter-")
	if err != nil {
		return fmt.Errorf("creating a folder beside DEST: %w", err)
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return fmt.Errorf("creating a folder beside DEST: %w", err)
	}
	from, err := write(repo, temp, o, s, r, origins)
	if err != nil {
		return err
	}
	if err := writeReadme(temp, o, s, r); err != nil {
		return err
	}
	if err := writeWorkflow(temp); err != nil {
		return err
	}
	if err := build(ctx, temp, o, s); err != nil {
		return err
	}
	left, err := leftovers(temp, r, from)
	if err != nil {
		return fmt.Errorf("looking for old names: %w", err)
	}
	if len(left) > 0 {
		return fmt.Errorf("old names are left, which is a mistake of %s or of its hack/starter.yaml:\n  %s", s.dir, strings.Join(left, "\n  "))
	}
	if err := os.Remove(o.Dest); err != nil && !errors.Is(err, os.ErrNotExist) { // it is empty
		return fmt.Errorf("replacing the empty DEST: %w", err)
	}
	if err := os.Rename(temp, o.Dest); err != nil {
		return fmt.Errorf("moving the copy to DEST: %w", err)
	}
	return sayUntracked(ctx, repo, origins)
}

// build makes what is generated anew, and compiles the copy.
func build(ctx context.Context, dest string, o options, s *stage) error {
	if err := regenerate(ctx, dest, s); err != nil {
		return err
	}
	return compiles(ctx, dest, o)
}

// regenerate makes the copy's generated files anew, which list things by name, and removes from its modules what only dropped
// packages need.
func regenerate(ctx context.Context, dest string, s *stage) error {
	if err := command(ctx, dest, "make", "generate", "manifests"); err != nil {
		return err
	}
	if len(s.hints.Drop) == 0 {
		return nil
	}
	for _, module := range []string{".", "test/e2e"} {
		if err := command(ctx, filepath.Join(dest, module), "go", "mod", "tidy"); err != nil {
			return err
		}
	}
	return nil
}

// compiles rejects a copy that Go does not take: the new name may be that of another function, variable or package of the stage.
func compiles(ctx context.Context, dest string, o options) error {
	for _, module := range []string{".", "test/e2e"} {
		if err := command(ctx, filepath.Join(dest, module), "go", "vet", "./..."); err != nil {
			return fmt.Errorf("KIND=%s: the copy does not build; if the stage has that name for something else, choose another: %w", o.Kind, err)
		}
	}
	return nil
}

// free rejects a kind whose name means something else in Go, in Kubernetes or in the stage's manifests, and a module that the
// stage uses.
func free(repo string, o options, s *stage, r *renamer) error {
	if word := strings.ToLower(o.Kind); token.IsKeyword(word) || types.Universe.Lookup(word) != nil {
		return fmt.Errorf("KIND=%s: %s is a word of Go; choose another", o.Kind, strings.ToLower(o.Kind))
	}
	if use := kubectlTakes(s, o.Kind); use != "" {
		return fmt.Errorf("KIND=%s: %s; choose another", o.Kind, use)
	}
	module, err := requiredBy(repo, o, s)
	if err != nil {
		return err
	}
	if module != "" {
		return fmt.Errorf("MODULE=%s: %s requires the module of that name, and one cannot require itself; choose another", o.Module, module)
	}
	use, err := taken(repo, s, r)
	if err != nil {
		return fmt.Errorf("reading %s: %w", s.dir, err)
	}
	if use != "" {
		return fmt.Errorf("KIND=%s: %s; choose another", o.Kind, use)
	}
	return nil
}

// command runs a program in dir. Its output is shown only if it fails.
func command(ctx context.Context, dir string, words ...string) error {
	cmd := program(ctx, dir, words...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, output.String())
	}
	return nil
}

// unclaimed rejects a folder below a workspace of Go, which a copy does not belong to: no command of Go would work in it.
func unclaimed(ctx context.Context, o options) error {
	out, err := program(ctx, filepath.Dir(o.Dest), "go", "env", "GOWORK").Output()
	if err != nil {
		return fmt.Errorf("looking for a workspace above DEST: %w", err)
	}
	if file := strings.TrimSpace(string(out)); file != "" && file != "off" {
		return fmt.Errorf("DEST=%s: the workspace %s claims what is there, and the copy would not build: choose another folder, or set GOWORK=off, "+
			"now and whenever you work on the copy", o.Dest, file)
	}
	return nil
}

// program is a program to run in dir, as the reader will run it there. When ctx ends it is interrupted, so
// that it can clean up, and killed only if that takes too long.
func program(ctx context.Context, dir string, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = dir
	cmd.Env = cleanEnv()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	return cmd
}

// cleanEnv is the environment without what `make starter` was told: make hands the variables of its
// command line to every make below it. The copy has a cluster of its own, which is deleted after the verification.
func cleanEnv() []string {
	var out []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch name {
		case "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "MAKELEVEL", "CLUSTER_NAME", "STAGE", "DEST", "MODULE", "DOMAIN", "KIND", "VERIFY", "HARNESS":
		default:
			out = append(out, variable)
		}
	}
	return out
}
