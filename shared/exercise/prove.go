package exercise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Proving says how the exercises are proven.
type Proving struct {
	// Jobs is how many checks run at once.
	Jobs int
	// Race builds with the race detector: a solution that has a data race fails.
	Race bool
	// Update writes golden.json where it differs.
	Update bool
	// Patience multiplies time limits.
	Patience float64
	// Repeat is how often each check runs. All runs have to come to the same.
	Repeat int
	Out    io.Writer
}

// proof is one thing to prove, with how it went.
type proof struct {
	target
	// kind is start, solution or mutant.
	kind, name string
	// runs is how often it has run.
	runs    int
	result  Result
	err     error
	problem string
}

func (p *proof) String() string {
	return strings.TrimSpace(p.exercise.ID + " " + p.kind + " " + p.name)
}

// Prove shows for each exercise that its start fails as declared, that each solution passes, that each mutant fails as
// declared, and that nothing is left on the API servers. It prints what took how long. The error says how much is wrong.
func Prove(ctx context.Context, root string, exercises []Exercise, how Proving) error {
	servers := NewServers(root)
	servers.alone = true
	defer servers.Close()
	if how.Race && !canRace() {
		how.Race = false
		fmt.Fprintln(how.Out, "          there is no C compiler: the race detector is not used")
	}
	var proofs []*proof
	folders := folders{}
	defer folders.remove()
	for _, e := range exercises {
		more, err := proofsOf(ctx, e, folders)
		if err != nil {
			return err
		}
		proofs = append(proofs, more...)
	}
	// Before the clock starts: all runs share them.
	if err := startServers(ctx, servers, exercises, func(text string) { fmt.Fprintf(how.Out, "          %s\n", text) }); err != nil {
		return err
	}
	began := time.Now()
	if err := proveAll(ctx, servers, proofs, how); err != nil {
		return err
	}
	if how.Update {
		if err := update(exercises, proofs); err != nil {
			return err
		}
	}
	faults, err := otherFaults(ctx, servers, exercises)
	if err != nil {
		return err
	}
	for _, fault := range faults {
		fmt.Fprintln(how.Out, fault)
	}
	return summary(how.Out, proofs, len(faults), time.Since(began))
}

// startServers starts the API server, and the cluster, that some of the exercises need.
func startServers(ctx context.Context, servers *Servers, exercises []Exercise, note func(string)) error {
	needs := map[Needs]bool{}
	for _, e := range exercises {
		needs[e.Needs] = true
	}
	if needs[APIServer] || needs[Manager] {
		if err := servers.Start(ctx, note); err != nil {
			return err
		}
	}
	for one := range kindOf {
		if needs[one] {
			if _, err := servers.acquireCluster(ctx, one, note); err != nil {
				return err
			}
		}
	}
	return nil
}

// otherFaults are those that no run shows: in the form of exercises, and objects that runs left.
func otherFaults(ctx context.Context, servers *Servers, exercises []Exercise) ([]string, error) {
	var faults []string
	for _, e := range exercises {
		for _, problem := range faultsOfForm(e) {
			faults = append(faults, e.ID+": "+problem)
		}
	}
	left, err := servers.leftovers(ctx)
	for _, object := range left {
		faults = append(faults, "left on the API server: "+object)
	}
	return faults, err
}

func proofsOf(ctx context.Context, e Exercise, folders folders) ([]*proof, error) {
	start := e.Dir
	if _, err := os.Stat(filepath.Join(e.Dir, "start")); err == nil {
		start = filepath.Join(e.Dir, "start")
	}
	proofs := []*proof{{target: target{e.ID + "/start", e, start}, kind: "start"}}
	solutions, err := e.Solutions()
	if err != nil {
		return nil, err
	}
	for _, s := range solutions {
		proofs = append(proofs, &proof{target: target{e.ID + "/solutions/" + s.Name, e, s.Dir}, kind: "solution", name: s.Name})
	}
	mutants, err := e.Mutants()
	if err != nil {
		return nil, err
	}
	for _, m := range mutants {
		dir, err := folders.write(ctx, e, m)
		if err != nil {
			return nil, err
		}
		proofs = append(proofs, &proof{target: target{e.ID + "/mutants/" + m.Name, e, dir}, kind: "mutant", name: m.Name})
	}
	return proofs, nil
}

// proveAll builds one program for each module and runs all checks.
func proveAll(ctx context.Context, servers *Servers, proofs []*proof, how Proving) error {
	temp, err := os.MkdirTemp("", "exercises-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	binaries := map[string]string{}
	for _, p := range proofs {
		module := p.exercise.Module()
		if binaries[module] != "" {
			continue
		}
		var targets []target
		for _, q := range proofs {
			if q.exercise.Module() == module {
				targets = append(targets, q.target)
			}
		}
		dir := filepath.Join(temp, p.exercise.Stage)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		began := time.Now()
		if binaries[module], err = build(ctx, dir, module, targets, how.Race, "-tags=start"); err != nil {
			return fmt.Errorf("building the checks of %s:\n%w", p.exercise.Stage, err)
		}
		fmt.Fprintf(how.Out, "%6.1f s  building the checks of %s\n", time.Since(began).Seconds(), p.exercise.Stage)
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, how.Jobs))
	options := Options{Servers: servers, Patience: how.Patience, Note: func(string) {}}
	// Those that wait do so beside others.
	for round := range max(1, how.Repeat) {
		if how.Repeat > 1 {
			fmt.Fprintf(how.Out, "          round %d of %d begins\n", round+1, how.Repeat)
		}
		for _, p := range proofs {
			group.Go(func() error {
				began := time.Now()
				result, err := runBuilt(ctx, binaries[p.exercise.Module()], p.target, options)
				// What Ctrl-C ended says nothing about the exercise.
				if err := ctx.Err(); err != nil {
					return err
				}
				result.Took = time.Since(began)
				mu.Lock()
				defer mu.Unlock()
				if p.note(result, err); p.runs == max(1, how.Repeat) {
					if !p.wrong() {
						p.problem = p.judge(how.Update)
					}
					p.print(how.Out)
				}
				return nil
			})
		}
	}
	return group.Wait()
}

// note adds a run. All have to come to the same.
func (p *proof) note(result Result, err error) {
	p.runs++
	switch {
	case p.wrong():
	case err != nil:
		p.err = err
	case p.runs > 1 && !result.Outcome().equal(p.result.Outcome()):
		p.problem = fmt.Sprintf("run %d came to\n%s\nand an earlier one to\n%s", p.runs, result.details(), p.result.details())
	default:
		p.result = result
	}
}

// judge returns what is wrong with the result, or an empty string.
func (p *proof) judge(update bool) string {
	outcome := p.result.Outcome()
	if p.kind == "solution" {
		switch {
		case p.result.Race != "":
			return "the race detector says:\n" + p.result.Race
		case !p.result.OK():
			return p.result.details() + "\n" + p.result.Output
		}
		return ""
	}
	if p.result.OK() || (len(outcome.Failed) == 0 && outcome.Died == "") {
		return "passes"
	}
	golden, err := p.exercise.Golden()
	if err != nil {
		return err.Error()
	}
	want := golden.Start
	if p.kind == "mutant" {
		want = golden.Mutants[p.name]
	}
	if !update && !outcome.equal(want) {
		return fmt.Sprintf("fails with\n%s\nand not as in golden.json (UPDATE=1 writes it), with\n%s", p.result.details(), want)
	}
	return ""
}

func (p *proof) print(out io.Writer) {
	mark := "ok  "
	if p.wrong() {
		mark = "FAIL"
	}
	fmt.Fprintf(out, "%6.1f s  %s %s\n", p.result.Took.Seconds(), mark, p)
	if p.err != nil {
		fmt.Fprintf(out, "  %v\n", p.err)
	}
	if p.problem != "" {
		fmt.Fprintf(out, "  %s\n", strings.ReplaceAll(strings.TrimSpace(p.problem), "\n", "\n  "))
	}
}

func (p *proof) wrong() bool { return p.problem != "" || p.err != nil }

func summary(out io.Writer, proofs []*proof, failed int, took time.Duration) error {
	var sum time.Duration
	kinds := map[string]int{}
	for _, p := range proofs {
		sum += p.result.Took
		kinds[p.kind]++
		if p.wrong() {
			failed++
		}
	}
	slowest := slices.Clone(proofs)
	slices.SortFunc(slowest, func(a, b *proof) int { return int(b.result.Took - a.result.Took) })
	fmt.Fprintln(out, "the slowest:")
	for _, p := range slowest[:min(5, len(slowest))] {
		fmt.Fprintf(out, "%6.1f s  %s\n", p.result.Took.Seconds(), p)
	}
	fmt.Fprintf(out, "%d starts, %d solutions and %d mutants in %.1f s; one after the other it would have been %.1f s\n",
		kinds["start"], kinds["solution"], kinds["mutant"], took.Seconds(), sum.Seconds())
	// Again, at the end: a long log may be cut to it.
	for _, p := range proofs {
		if p.wrong() {
			p.print(out)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d are wrong: %w", failed, errNotProven)
	}
	return nil
}

var errNotProven = errors.New("the exercises are not proven")
