package exercise

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gofrs/flock"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Mutant is an answer that people really give and that is wrong: a solution, with a few lines changed.
type Mutant struct {
	Name string
	// Text says what is wrong with it, in one or two sentences.
	Text string
	// solution is the folder that the patch changes, below solutions/.
	solution string
	// patch is a file as git diff --relative writes it in the folder of the exercise, with the text above it.
	patch string
}

// header is the first line about a file in a patch, with the name of the solution that the file belongs to, if it does.
var header = regexp.MustCompile(`(?m)^diff --git (?:a/solutions/([^/\s]+)/\S+ b/solutions/([^/\s]+)/\S+$)?`)

// Mutants are the files mutants/*.patch.
func (e Exercise) Mutants() ([]Mutant, error) {
	files, err := filepath.Glob(filepath.Join(e.Dir, "mutants", "*.patch"))
	if err != nil {
		return nil, err
	}
	var mutants []Mutant
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		named := sets.New[string]()
		for _, match := range header.FindAllStringSubmatch(string(content), -1) {
			named.Insert(match[1:]...)
		}
		solution, _ := named.PopAny()
		if solution == "" || named.Len() > 0 {
			return nil, fmt.Errorf("%s: a mutant changes the files of one solution, as git diff --relative shows it in %s", file, e.Dir)
		}
		mutants = append(mutants, Mutant{
			Name: strings.TrimSuffix(filepath.Base(file), ".patch"), Text: oneLine(header.Split(string(content), 2)[0]),
			solution: solution, patch: file,
		})
	}
	return mutants, nil
}

// folders has a folder for each module in which the mutants of its exercises are. It is in work/, as the reader's code: the
// mutants are packages of the module, and git and ./... leave them out.
type folders map[string]*lockedFolder

type lockedFolder struct {
	dir  string
	lock *flock.Flock
}

func (f folders) of(module string) (string, error) {
	if f[module] != nil {
		return f[module].dir, nil
	}
	work := filepath.Join(module, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return "", err
	}
	// The name is the same each time, or Go would find no package in its cache.
	own := &lockedFolder{dir: filepath.Join(work, "proof"), lock: flock.New(filepath.Join(work, "proof.lock"))}
	free, err := own.lock.TryLock()
	if err != nil {
		return "", err
	}
	if !free {
		return "", fmt.Errorf("%s is in use: another exercises-check runs in this clone; wait for its end", own.dir)
	}
	f[module] = own
	// A run that was killed has left its own.
	return own.dir, os.RemoveAll(own.dir)
}

func (f folders) remove() {
	for _, own := range f {
		_ = os.RemoveAll(own.dir)
		_ = own.lock.Unlock()
	}
}

// write makes the mutant's files and returns their folder.
func (f folders) write(ctx context.Context, e Exercise, m Mutant) (string, error) {
	temp, err := f.of(e.Module())
	if err != nil {
		return "", err
	}
	dir := filepath.Join(temp, filepath.Base(e.Dir), "mutants", m.Name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(e.Dir, "solutions", m.solution))); err != nil {
		return "", fmt.Errorf("%s: %w", m.patch, err)
	}
	if err := os.Remove(filepath.Join(dir, whyFile)); err != nil {
		return "", err
	}
	// Three levels are left out: a, solutions and the name of the solution. Without the ceiling git would take the paths as
	// those of the repository that the folder is in.
	cmd := exec.CommandContext(ctx, "git", "apply", "--whitespace=nowarn", "-p3", m.patch)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_DIR=")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s cannot be applied to the solution %s: %w\n%s", m.patch, m.solution, err, output)
	}
	return dir, nil
}
