// exercises-check proves the exercises of the workbook, for those who write them: each start fails as declared, each
// solution passes under the race detector, each mutant fails as declared, and nothing is left on the API server.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/exercise"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "exercises-check:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	how := exercise.Proving{Out: os.Stdout}
	stage := flag.String("stage", "", "the number of a stage: only its exercises")
	only := flag.String("exercise", "", "IDs of exercises, with commas: only these")
	flag.IntVar(&how.Jobs, "jobs", 8, "how many checks run at once")
	flag.IntVar(&how.Repeat, "repeat", 1, "how often each check runs; all runs have to come to the same")
	flag.Float64Var(&how.Patience, "patience", 4, "by how much time limits are multiplied")
	flag.BoolVar(&how.Race, "race", true, "build with the race detector")
	flag.BoolVar(&how.Update, "update", false, "write golden.json where it differs")
	flag.Parse()

	root, err := config.Repo()
	if err != nil {
		return err
	}
	all, err := exercise.List(root)
	if err != nil {
		return err
	}
	// A container engine has to be there for those that need a kind cluster, which share its nodes: they are proven by
	// themselves.
	kind := os.Getenv("CLUSTER") == "kind"
	if kind {
		how.Jobs = 1
	}
	var chosen []exercise.Exercise
	var left []string
	for _, e := range all {
		if *stage != "" && !strings.HasPrefix(e.Stage, "0"+*stage+"-") {
			continue
		}
		if *only != "" && !strings.Contains(","+*only+",", ","+e.ID+",") {
			continue
		}
		switch {
		case kind == (e.Needs == exercise.Kind):
			chosen = append(chosen, e)
		case !kind:
			left = append(left, e.ID)
		}
	}
	if len(left) > 0 {
		fmt.Printf("NOT RUN: %s: CLUSTER=kind proves what needs a kind cluster\n", strings.Join(left, ", "))
	}
	if len(chosen) == 0 {
		return fmt.Errorf("there is no such exercise (stage %q, exercise %q)", *stage, *only)
	}
	return exercise.Prove(ctx, root, chosen, how)
}
