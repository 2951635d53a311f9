// Command faults-corpus puts known bugs into an operator, one at a time, and prints whether the faults suite of its stage
// finds each, after how many schedules, and how small a schedule shows it. The tree stays as it is: go test -overlay.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// bug is one change of one file of a stage, and the class of faults that shows it.
type bug struct {
	Name     string          `json:"name"`
	File     string          `json:"file"`
	Old      string          `json:"old"`
	New      string          `json:"new"`
	Class    string          `json:"class"`
	Schedule json.RawMessage `json:"schedule,omitempty"` // one that shows it
}

const corpusFile = "test/e2e/faults/corpus.json"

func main() {
	stage := flag.String("stage", ".", "the folder of the stage")
	check := flag.Bool("check", false, "only report whether each bug can be put in")
	only := flag.String("only", "", "only the bugs whose name has this")
	limit := flag.Duration("for", 0, "how long to look for each, without the time to build; 0 is until all schedules have run")
	seeds := flag.Int("seeds", 300, "how many random schedules to run for each")
	flag.Parse()
	if err := run(context.Background(), *stage, *only, *check, fmt.Sprintf("-seeds=%d", *seeds), fmt.Sprintf("-for=%v", *limit)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, stage, only string, check bool, flags ...string) error {
	bugs, err := read(stage)
	if err != nil || check {
		return err
	}
	// Each row when it is known: all of them take long.
	const row = "%-8s  %-50s  %6s  %-25s  %s\n"
	fmt.Fprintf(os.Stdout, row, "class", "bug", "after", "shrunk to", "found by")
	missed := 0
	for _, one := range bugs {
		if !strings.Contains(one.Name, only) {
			continue
		}
		found, err := hunt(ctx, stage, one, flags...)
		if err != nil {
			return fmt.Errorf("%s: %w", one.Name, err)
		}
		if found == nil {
			missed++
			found = []string{"", "not found", "", "", ""}
		}
		fmt.Fprintf(os.Stdout, row, one.Class, one.Name, found[1], found[2], found[4])
	}
	if missed > 0 {
		return fmt.Errorf("%d bugs were not found", missed)
	}
	return nil
}

// read reads the bugs of a stage. The text that each replaces is in its file exactly once.
func read(stage string) ([]bug, error) {
	content, err := os.ReadFile(filepath.Join(stage, corpusFile))
	if err != nil {
		return nil, err
	}
	var bugs []bug
	if err := json.Unmarshal(content, &bugs); err != nil {
		return nil, fmt.Errorf("reading %s: %w", corpusFile, err)
	}
	var errs []error
	for _, one := range bugs {
		source, err := os.ReadFile(filepath.Join(stage, one.File))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if count := strings.Count(string(source), one.Old); count != 1 {
			errs = append(errs, fmt.Errorf("%s: %s has what it replaces %d times, not once", one.Name, one.File, count))
		}
	}
	return bugs, errors.Join(errs...)
}

var foundPattern = regexp.MustCompile(`found after (\d+) schedules, shrunk to (\d+ faults and \d+ operations) by (\d+) runs in [0-9.]+ s: (.*)`)

// hunt builds the suite with a bug and runs it. It returns what the suite prints of the first failure.
func hunt(ctx context.Context, stage string, one bug, flags ...string) ([]string, error) {
	temp, err := os.MkdirTemp("", "faults-corpus-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	overlay, err := overlayOf(temp, stage, one)
	if err != nil {
		return nil, err
	}
	args := append([]string{"test", "-count=1", "-timeout=60m", "-overlay=" + overlay, "./faults", "-args", "-class=" + one.Class}, flags...)
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = filepath.Join(stage, "test", "e2e")
	output, err := command.CombinedOutput()
	if found := foundPattern.FindStringSubmatch(string(output)); found != nil {
		return found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, output)
	}
	return nil, nil
}

// overlayOf writes the changed file and what tells go of it.
func overlayOf(temp, stage string, one bug) (string, error) {
	path, err := filepath.Abs(filepath.Join(stage, one.File))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(temp, "changed.go"), filepath.Join(temp, "overlay.json")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), one.Old, one.New, 1)), 0o600); err != nil {
		return "", err
	}
	content, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, content, 0o600)
}
