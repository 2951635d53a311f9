// Package exercise lists the exercises of the workbook and runs their checks. The program that readers use and the one
// that authors use are built on it. What a check itself uses is in the packages check and kube.
package exercise

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Needs says what a check runs against.
type Needs string

// What a check can run against.
const (
	// Nothing but the Go standard library and apimachinery.
	Nothing Needs = ""
	// APIServer is etcd and an API server without controllers, as envtest starts them.
	APIServer Needs = "E"
	// Manager is the same, and the check runs a manager of controller-runtime.
	Manager Needs = "M"
	// Cluster is an embedded cluster.
	Cluster Needs = "C"
	// Kind is a kind cluster. Runs share its nodes with all that is on them, so that there is one at a time.
	Kind Needs = "K"
)

// defaultLimit is how long a run may take if the exercise does not say otherwise.
const defaultLimit = 30 * time.Second

// Exercise is one folder NN-stage/exercises/<chapter><letter>-<name>/, or NN-stage/exercises/capstone-<name>/.
type Exercise struct {
	// ID is the chapter and a letter, as in 09a, or the name of a capstone.
	ID string
	// Name is the rest of the folder's name, as in the-loop, or capstone.
	Name  string
	Title string
	// Stage is the folder of the stage, as in 01-informers.
	Stage string
	// Chapter is empty for a capstone, which comes after all exercises.
	Chapter string
	// Dir is the absolute path of the folder.
	Dir string
	// Part0 exercises build on each other and are worked through in one project.
	Part0 bool
	// Project is the folder beside the workbook with a project of the reader's own, which is checked. Most exercises have none.
	Project string
	Needs   Needs
	// OwnServer is set if the check changes what is not in a namespace: no other check uses that API server meanwhile.
	OwnServer bool
	// Entry is the function that the reader writes. It is empty if the check looks at files only.
	Entry string
	// Limit is how long a run may take. On a busy machine the caller may give more.
	Limit time.Duration
}

// manifest is the file exercise.json.
type manifest struct {
	Title     string `json:"title"`
	Needs     Needs  `json:"needs,omitempty"`
	OwnServer bool   `json:"ownServer,omitempty"`
	Entry     string `json:"entry,omitempty"`
	Project   string `json:"project,omitempty"`
	Seconds   int    `json:"seconds,omitempty"`
}

// part0 is the order in which the steps of Part 0 build on each other.
var part0 = []string{"11a", "11b", "11c", "14a", "12b", "13a", "16a", "16b", "17a", "15c", "17b", "17c"}

// folder matches the name of an exercise's folder: one group has the name of a capstone, the others ID, chapter and name.
var folder = regexp.MustCompile(`^(?:capstone-([a-z]+)|((\d\d)[a-z])-([a-z0-9-]+))$`)

// List returns the exercises below root, the folder of the workbook, in the order in which a reader meets them: Part 0,
// then the chapters, then the capstones.
func List(root string) ([]Exercise, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "0[1-4]-*", "exercises", "*", "exercise.json"))
	if err != nil {
		return nil, err
	}
	var exercises []Exercise
	for _, file := range files {
		e, err := read(file)
		if err != nil {
			return nil, err
		}
		exercises = append(exercises, e)
	}
	slices.SortFunc(exercises, func(a, b Exercise) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Chapter, b.Chapter), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.ID, b.ID))
	})
	for i := 1; i < len(exercises); i++ {
		if exercises[i].ID == exercises[i-1].ID {
			return nil, fmt.Errorf("two exercises are called %s: %s and %s", exercises[i].ID, exercises[i-1].Dir, exercises[i].Dir)
		}
	}
	return exercises, nil
}

// place is the step of Part 0, or a number greater than all of these.
func place(e Exercise) int {
	if i := slices.Index(part0, e.ID); i >= 0 {
		return i
	}
	if e.IsCapstone() {
		return len(part0) + 1
	}
	return len(part0)
}

// IsCapstone says whether the reader writes a whole operator, from a specification.
func (e Exercise) IsCapstone() bool { return e.Chapter == "" }

func read(file string) (Exercise, error) {
	dir := filepath.Dir(file)
	parts := folder.FindStringSubmatch(filepath.Base(dir))
	if parts == nil {
		return Exercise{}, fmt.Errorf("%s: the name of an exercise's folder is like 09a-the-loop or capstone-mirror", dir)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return Exercise{}, err
	}
	var m manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return Exercise{}, fmt.Errorf("%s: %w", file, err)
	}
	e := Exercise{
		ID: parts[1] + parts[2], Name: parts[4], Title: m.Title, Chapter: parts[3], Dir: dir,
		Stage:   filepath.Base(filepath.Dir(filepath.Dir(dir))),
		Part0:   slices.Contains(part0, parts[2]),
		Project: m.Project, Needs: m.Needs, OwnServer: m.OwnServer, Entry: m.Entry, Limit: defaultLimit,
	}
	if e.Part0 {
		e.Project = "my-lolcow"
	}
	if e.IsCapstone() {
		e.Name = "capstone"
	}
	if m.Seconds > 0 {
		e.Limit = time.Duration(m.Seconds) * time.Second
	}
	return e, nil
}

// Find returns the exercise with this ID.
func Find(root, id string) (Exercise, error) {
	exercises, err := List(root)
	if err != nil {
		return Exercise{}, err
	}
	for _, e := range exercises {
		if e.ID == id {
			return e, nil
		}
	}
	return Exercise{}, fmt.Errorf("there is no exercise %s: %w", id, fs.ErrNotExist)
}

// Module is the folder of the Go module that the exercise belongs to.
func (e Exercise) Module() string { return filepath.Dir(e.Dir) }

// WorkDir is the folder that the reader edits: one that git ignores, or that of the project. A variable of the project's name says
// where else that is, as MY_LOLCOW does; it may be relative to the workbook.
func (e Exercise) WorkDir() string {
	if e.Project != "" {
		root := filepath.Dir(filepath.Dir(e.Module()))
		dir := cmp.Or(os.Getenv(strings.ToUpper(strings.ReplaceAll(e.Project, "-", "_"))), filepath.Join(filepath.Dir(root), e.Project))
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
		return dir
	}
	return filepath.Join(e.Module(), "work", filepath.Base(e.Dir))
}

// whyFile is the file of a solution with the text about it.
const whyFile = "why.txt"

// Solution is an answer that is known to be right.
type Solution struct {
	Name string
	Dir  string
	// Text says why it is right, in one or two sentences.
	Text string
}

// Solutions are the folders solutions/*.
func (e Exercise) Solutions() ([]Solution, error) {
	entries, err := os.ReadDir(filepath.Join(e.Dir, "solutions"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var solutions []Solution
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		s := Solution{Name: entry.Name(), Dir: filepath.Join(e.Dir, "solutions", entry.Name())}
		content, err := os.ReadFile(filepath.Join(s.Dir, whyFile))
		if err != nil {
			return nil, err
		}
		s.Text = oneLine(string(content))
		solutions = append(solutions, s)
	}
	// The next step of a chain builds on the reference.
	if i := slices.IndexFunc(solutions, func(s Solution) bool { return s.Name == "_reference" }); i > 0 {
		solutions = slices.Concat(solutions[i:i+1], solutions[:i], solutions[i+1:])
	}
	return solutions, nil
}
