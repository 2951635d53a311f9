package exercise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	"example.com/workbook/shared/exercise/check"
)

// Behaviour is one thing that a check asks of the reader's code, with what came out.
type Behaviour struct {
	Name string
	OK   bool
	// Seen says what was observed instead. It is empty if OK.
	Seen string
	// Timeline is what happened up to there, one line for each event or request.
	Timeline []string
}

// Death is the end of a run that was not orderly.
type Death struct {
	// Kind is panic, exit, loop or killed.
	Kind string
	// Behaviour is the name of the one that was being checked. It is empty before the first.
	Behaviour string
	// Message is the panic's, or says what happened.
	Message string
	// Line is the reader's, as in exercise.go:42. It is empty if none could be found.
	Line string

	stack string
}

// Result is what one run of a check found.
type Result struct {
	Behaviours []Behaviour
	// CompileError is what the compiler says, and empty if the reader's code compiles.
	CompileError string
	// Died is set if the reader's code ended the run, or never did.
	Died *Death
	// Race is the report of the race detector, if Options.Race is set and it found one.
	Race string
	// Diagnosis says what is probably wrong: the text of the mutant that came to the same, with the same message. It may be
	// empty.
	Diagnosis string
	// Alike is the text of the only mutant whose failed behaviours are the same, where none has the same message.
	Alike string
	// Output is what the reader's code printed, at most 64 KiB.
	Output string
	// Took is how long all of it took, and Built how long of that the compiler.
	Took, Built time.Duration
}

// OK says whether the exercise is solved.
func (r Result) OK() bool {
	if r.CompileError != "" || r.Died != nil || r.Race != "" || len(r.Behaviours) == 0 {
		return false
	}
	for _, b := range r.Behaviours {
		if !b.OK {
			return false
		}
	}
	return true
}

// Options are the circumstances of a run.
type Options struct {
	// Servers is where the API server comes from. Without it, Run attaches to that of a runner that is at work in this
	// clone, or starts one and stops it at the end.
	Servers *Servers
	// Race builds with the race detector.
	Race bool
	// Patience multiplies the time limit, for machines that have much to do. 0 means 1.
	Patience float64
	// Note is called with what takes long, as it begins. It may be nil.
	Note func(string)
}

// Run builds the code in workDir together with the check of the exercise, and runs it as a child process. The error is
// about the circumstances: Go is missing, no API server starts, ctx was cancelled. What is wrong with the reader's code is
// in the Result.
func Run(ctx context.Context, e Exercise, workDir string, options Options) (Result, error) {
	began := time.Now()
	if options.Note == nil {
		options.Note = func(string) {}
	}
	t := target{key: e.ID, exercise: e, dir: workDir}
	if text := missing(t); text != "" {
		return Result{CompileError: text, Took: time.Since(began)}, nil
	}
	temp, err := os.MkdirTemp("", "exercise-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(temp)
	binary, err := build(ctx, temp, e.Module(), []target{t}, options.Race)
	built := time.Since(began)
	if failure, ok := errors.AsType[*compileError](err); ok {
		return Result{CompileError: failure.text, Took: built, Built: built}, nil
	}
	if err != nil {
		return Result{}, err
	}
	result, err := runBuilt(ctx, binary, t, options)
	if err != nil {
		return Result{}, err
	}
	result.Built, result.Took = built, time.Since(began)
	golden, err := e.Golden()
	if err != nil {
		return Result{}, err
	}
	result.Diagnosis, result.Alike, err = e.diagnosis(golden, result)
	return result, err
}

// runBuilt runs a check whose program is there, against an API server if it needs one.
func runBuilt(ctx context.Context, binary string, t target, options Options) (Result, error) {
	patience := max(1, options.Patience)
	x := execution{
		binary: binary, target: t, limit: time.Duration(float64(t.exercise.Limit) * patience),
		env:  []string{fmt.Sprintf("%s=%g", check.PatienceVariable, patience)},
		note: options.Note,
	}
	if t.exercise.Needs == Nothing {
		return execute(ctx, x)
	}
	servers := options.Servers
	if servers == nil {
		servers = NewServers(filepath.Dir(filepath.Dir(t.exercise.Module())))
		defer servers.Close()
	}
	lease, err := servers.acquireFor(ctx, t.exercise, options.Note)
	if err != nil {
		return Result{}, err
	}
	name := fmt.Sprintf("%s-%s", t.exercise.ID, rand.String(8))
	x.env = append(x.env, check.ServerVariable+"="+lease.file(), check.RunVariable+"="+name)
	if t.exercise.Needs == Kind {
		x.env = append(x.env, check.KubectlVariable+"="+lease.cluster.kubectl)
	}
	result, err := execute(ctx, x)
	// Also after Ctrl-C: the server outlives the run.
	cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	err = errors.Join(err, lease.release(cleaning, name))
	return result, err
}
