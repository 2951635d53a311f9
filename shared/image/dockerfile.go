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
}

// readTargets returns what a stage's Dockerfile can make, in its order.
func readTargets(stageDir string) ([]target, error) {
	f, err := os.Open(filepath.Join(stageDir, "Dockerfile"))
	if err != nil {
		return nil, fmt.Errorf("reading the Dockerfile: %w", err)
	}
	defer f.Close()
	var out []target
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) > 1 && strings.EqualFold(words[0], "FROM"):
			next := target{}
			if len(words) > 3 && strings.EqualFold(words[len(words)-2], "AS") {
				next.name = words[len(words)-1]
			}
			out = append(out, next)
		case len(words) > 2 && strings.EqualFold(words[0], "COPY") && len(out) > 0:
			for _, source := range words[1 : len(words)-1] {
				if dir, program := path.Split(source); dir == binDir {
					out[len(out)-1].programs = append(out[len(out)-1].programs, program)
				}
			}
		}
	}
	return out, lines.Err()
}

// programsOf returns the programs that are copied into a target, and those that are copied into the ones before it,
// which Docker's older builder makes too.
func programsOf(stageDir, name string) (own, earlier []string, err error) {
	targets, err := readTargets(stageDir)
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(targets, func(t target) bool { return t.name == name })
	if at < 0 {
		return nil, nil, fmt.Errorf("the Dockerfile of %s has no target %s", filepath.Base(stageDir), name)
	}
	for _, t := range targets[:at] {
		earlier = append(earlier, t.programs...)
	}
	return targets[at].programs, earlier, nil
}
