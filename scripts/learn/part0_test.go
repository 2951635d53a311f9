package main

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/workbook/shared/exercise"
)

// withPart0 adds a step of Part 0 to a workbook, with a script in place of the real one.
func withPart0(t *testing.T) (*runner, exercise.Exercise) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "workbook")
	writeWorkbook(t, root)
	dir := "02-lolcow/exercises/11a-empty-folder/"
	must(t, files{
		dir + "exercise.json":                []byte(`{"title": "An empty folder becomes an API"}`),
		dir + "README.md":                    []byte("# 11a\n"),
		dir + "solutions/plain/api/types.go": []byte("package v1alpha1\n"),
		dir + "solutions/plain/why.txt":      []byte("Why.\n"),
		"scripts/my-lolcow.sh":               []byte("#!/bin/sh\n[ \"$1 $2\" = 'adopt 11a' ] && echo adopted >\"$3/exercise.go\" && echo 'your files are in .kept'\n"),
	}.write(root))
	must(t, os.Chmod(filepath.Join(root, "scripts/my-lolcow.sh"), 0o755))
	r, _ := runnerIn(t, root)
	e := r.exercises[0]
	if !e.Part0 {
		t.Fatalf("%s is first, expected the step of Part 0", e.ID)
	}
	return r, e
}

func TestPart0IsCheckedInTheProject(t *testing.T) {
	t.Parallel()
	r, e := withPart0(t)
	for _, command := range []string{"run", "adopt"} {
		code, text := typed(t, r, command, "11a")
		expect(t, command+" without a project", code, exitCannot, text, "there is no project yet: scripts/my-lolcow.sh new", "../my-lolcow")
	}
	if _, err := os.Stat(e.WorkDir()); err == nil {
		t.Error("a command made the folder of the project")
	}
	code, text := typed(t, r, "check-all")
	expect(t, "check-all", code, exitNotYet, text, "no exercise is begun")

	must(t, files{"exercise.go": []byte(startText)}.write(filepath.Join(r.root, "../my-lolcow")))
	code, text = typed(t, r, "run", "11a")
	expect(t, "run", code, exitNotYet, text, "✗ a lost event")
	code, text = typed(t, r, "reset", "11a")
	expect(t, "reset", code, exitCannot, text, "has no start of its own")
	code, text = typed(t, r, "adopt", "11a")
	expect(t, "adopt", code, exitDone, text, "your files are in .kept")
	code, text = typed(t, r, "run", "11a")
	expect(t, "run", code, exitDone, text, "11a is done")
}

func TestScreenWaitsForTheProject(t *testing.T) {
	t.Parallel()
	r, e := withPart0(t)
	d := newDesk(t, r)
	d.until("there is no project yet")
	must(t, files{"exercise.go": []byte(solutionText)}.write(e.WorkDir()))
	d.until("✓ 11a is done")
}

func TestALaterStepProvesThoseBeforeIt(t *testing.T) {
	t.Parallel()
	before, _ := withPart0(t)
	must(t, files{
		"02-lolcow/exercises/11b-first-child/exercise.json": []byte(`{"title": "The first dependent"}`),
		"02-lolcow/exercises/11b-first-child/README.md":     []byte("# 11b\n"),
		"../my-lolcow/exercise.go":                          []byte(solutionText),
	}.write(before.root))
	r, _ := runnerIn(t, before.root)
	code, text := typed(t, r, "run", "11b")
	expect(t, "run", code, exitDone, text, "11b is done")
	code, text = typed(t, r, "list")
	expect(t, "list", code, exitDone, text, "✓ 11a", "✓ 11b")
}

func TestAnExerciseAboutAProjectOfItsOwn(t *testing.T) {
	root := filepath.Join(t.TempDir(), "workbook")
	writeWorkbook(t, root)
	dir := "02-lolcow/exercises/25a-used-field/"
	must(t, files{
		dir + "exercise.json":           []byte(`{"title": "A field that is used", "project": "teapot"}`),
		dir + "README.md":               []byte("# 25a\n"),
		dir + "start/README.txt":        []byte("A copy.\n"),
		dir + "solutions/plain/why.txt": []byte("Why.\n"),
		dir + "solutions/plain/a.patch": []byte("+a line\n"),
	}.write(root))
	r, _ := runnerIn(t, root)
	code, text := typed(t, r, "run", "25a")
	expect(t, "run without a project", code, exitCannot, text, "there is no project yet: the task of 25a says how to make it", "../teapot")

	must(t, files{"exercise.go": []byte(startText)}.write(filepath.Join(root, "../teapot")))
	code, text = typed(t, r, "run", "25a")
	expect(t, "run", code, exitNotYet, text, "✗ a lost event")
	for command, want := range map[string]string{"reset": "has no start of its own", "adopt": "make learn solution 25a shows it"} {
		code, text = typed(t, r, command, "25a")
		expect(t, command, code, exitCannot, text, want)
	}
	code, text = typed(t, r, "solution", "25a")
	expect(t, "solution", code, exitDone, text, "a line")

	t.Setenv("TEAPOT", "../kettle")
	must(t, files{"exercise.go": []byte(solutionText)}.write(filepath.Join(root, "../kettle")))
	code, text = typed(t, r, "run", "25a")
	expect(t, "run in another folder", code, exitDone, text, "25a is done")
}
