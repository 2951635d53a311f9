package image

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// binDir is where a Dockerfile finds the programs.
const binDir = "bin/linux-${TARGETARCH}/"

// target is a part of a Dockerfile that begins with FROM.
type target struct {
	// name is what stands after AS; empty: it cannot be built alone.
	name string
	// programs are those that it copies from binDir.
	programs []string
	// open says that it holds more than a hash of the programs and the Dockerfile covers.
	open bool
}

// readTargets returns what a stage's Dockerfile can make, in its order.
func readTargets(stageDir string) ([]target, error) {
	f, err := os.Open(filepath.Join(stageDir, "Dockerfile"))
	if err != nil {
		return nil, fmt.Errorf("reading the Dockerfile: %w", err)
	}
	defer f.Close()
	var out []target
	var instruction string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "#") {
			continue
		}
		instruction += line
		if start, goesOn := strings.CutSuffix(instruction, "\\"); goesOn {
			instruction = start + " "
			continue
		}
		words := strings.Fields(instruction)
		instruction = ""
		switch {
		case len(words) < 2:
		case strings.EqualFold(words[0], "FROM"):
			out = append(out, newTarget(words, out))
		case len(out) > 0:
			out[len(out)-1].add(words)
		}
	}
	return out, lines.Err()
}

// newTarget is what begins with an instruction FROM. One that goes on from an earlier target holds what that holds.
func newTarget(from []string, earlier []target) target {
	next := target{}
	if len(from) > 3 && strings.EqualFold(from[len(from)-2], "AS") {
		next.name = from[len(from)-1]
	}
	base := from[1]
	if strings.HasPrefix(base, "--") && len(from) > 2 {
		base = from[2]
	}
	next.open = slices.ContainsFunc(earlier, func(t target) bool { return strings.EqualFold(t.name, base) })
	return next
}

// add reads one of a target's further instructions. What comes from elsewhere than binDir is in no hash.
func (t *target) add(words []string) {
	switch strings.ToUpper(words[0]) {
	case "ADD":
		t.open = true
	case "RUN":
		t.open = t.open || strings.HasPrefix(words[1], "--")
	case "COPY":
		sources := words[1 : len(words)-1]
		if len(sources) == 0 { // ["the","JSON","form"]
			t.open = true
		}
		for _, source := range sources {
			dir, program := path.Split(source)
			switch {
			case dir == binDir && program != "":
				t.programs = append(t.programs, program)
			case !strings.HasPrefix(source, "--chmod=") && !strings.HasPrefix(source, "--chown="):
				t.open = true
			}
		}
	}
}

// findTarget returns a target, and the programs that are copied into the ones before it, which Docker's older builder
// makes too.
func findTarget(stageDir, name string) (found target, earlier []string, err error) {
	targets, err := readTargets(stageDir)
	if err != nil {
		return target{}, nil, err
	}
	at := slices.IndexFunc(targets, func(t target) bool { return t.name == name })
	if at < 0 {
		return target{}, nil, fmt.Errorf("the Dockerfile of %s has no target %s", filepath.Base(stageDir), name)
	}
	for _, t := range targets[:at] {
		earlier = append(earlier, t.programs...)
	}
	return targets[at], earlier, nil
}
