// Package part0 checks the project that a reader makes in Part 0, Lolcow in a weekend. It compiles the suite together with
// the project, which knows nothing of it: a main package is laid into the project, and the suite is added to its
// requirements, both by files that only the compiler sees.
//
// Its files in the order of reading:
//
//	part0.go    Check: what each step's check calls
//	project.go  the project that is meant: the reader's, a start, a solution or a mutant
//	build.go    the program with the suite
//	adopt.go    the solution of a step, put into a reader's project
//	suite/      what the steps ask for
package part0

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"example.com/workbook/shared/exercise/check"
)

// Check checks the project in work.Dir for a step and those before it. It does not return if the project compiles: the
// program with the suite takes the place of this process, and with it what the runner gave to this process.
func Check(t *check.T, work check.Work[check.Files], step string) {
	began := time.Now()
	t.Behaviour("the project compiles", func(b *check.B) {
		ctx, stop := signal.NotifyContext(b.Context(), syscall.SIGTERM, os.Interrupt)
		defer stop()
		temp, err := os.MkdirTemp("", "part0-")
		if err != nil {
			b.Fatalf("%v", err)
		}
		// The program deletes it as soon as it runs.
		err = prepare(ctx, temp, work.Dir, step, time.Since(began))
		if removeErr := os.RemoveAll(temp); removeErr != nil {
			err = errors.Join(err, removeErr)
		}
		b.Fatalf("%v", err)
	})
}

// prepare compiles the program and runs it in place of this process. It returns only if that fails.
func prepare(ctx context.Context, temp, dir, step string, spent time.Duration) error {
	p, err := projectIn(ctx, dir, step)
	if err != nil {
		return err
	}
	binary, err := build(ctx, temp, p)
	if err != nil {
		return err
	}
	return become(binary, step, p, temp, spent)
}

// Variables of the program.
const (
	// filesVariable has the folders of the project's files, the first that has a file first.
	filesVariable = "PART0_FILES"
	// tempVariable is a folder that the program deletes.
	tempVariable = "PART0_TEMP"
)

// become runs the program in place of this process. It keeps the descriptor of results, the process group and the time
// limit, of which some is spent.
func become(binary, step string, p *project, temp string, spent time.Duration) error {
	env := os.Environ()
	if limit, err := time.ParseDuration(os.Getenv(check.LimitVariable)); err == nil {
		env = append(env, fmt.Sprintf("%s=%s", check.LimitVariable, limit-spent))
	}
	env = append(env, filesVariable+"="+strings.Join(p.layers, string(filepath.ListSeparator)), tempVariable+"="+temp)
	return fmt.Errorf("running the check: %w", syscall.Exec(binary, []string{binary, step}, env))
}
