package check

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// What the parent tells a run by its environment.
const (
	// PatienceVariable is by how much waiting times are multiplied.
	PatienceVariable = "EXERCISE_PATIENCE"
	// ServerVariable is a file that says how the API server is reached: see package kube.
	ServerVariable = "EXERCISE_SERVER"
	// RunVariable names the run. Its namespaces carry this name, so that the parent can delete what a crash left.
	RunVariable = "EXERCISE_RUN"
	// KubectlVariable is a kubectl, if the check runs against a kind cluster.
	KubectlVariable = "EXERCISE_KUBECTL"
	// LimitVariable is how long the run may take, as a duration.
	LimitVariable = "EXERCISE_LIMIT"
)

// RunLabel is the label of a run's namespaces.
const RunLabel = "exercise-run"

// ResultsFD is the file descriptor that a run writes its results to. Standard output and standard error belong to the
// reader's code.
const ResultsFD = 3

// Line is one of the results, a JSON object on a line of its own.
type Line struct {
	Begin     string   `json:"begin,omitempty"`
	Behaviour string   `json:"behaviour,omitempty"`
	OK        bool     `json:"ok,omitempty"`
	Seen      string   `json:"seen,omitempty"`
	Timeline  []string `json:"timeline,omitempty"`
	// Stack is that of all goroutines when the time limit was exceeded.
	Stack string `json:"stack,omitempty"`
	// End is the last line of a run that came to its end.
	End bool `json:"end,omitempty"`
}

// Main is the main function of a program with checks, each under the name of what it looks at. The program's one argument
// is such a name.
func Main(checks map[string]func(*T)) {
	if len(os.Args) != 2 || checks[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "this program is run by the runner of exercises")
		os.Exit(2)
	}
	out := json.NewEncoder(os.NewFile(ResultsFD, "results"))
	var mu sync.Mutex
	report := func(l Line) {
		mu.Lock()
		defer mu.Unlock()
		if err := out.Encode(l); err != nil {
			fmt.Fprintln(os.Stderr, "reporting a result:", err)
			os.Exit(2)
		}
	}
	if limit, err := time.ParseDuration(os.Getenv(LimitVariable)); err == nil {
		time.AfterFunc(limit, func() {
			stack := make([]byte, 1<<20)
			report(Line{Stack: string(stack[:runtime.Stack(stack, true)])})
			os.Exit(1)
		})
	}
	checks[os.Args[1]](&T{ctx: context.Background(), report: report})
	report(Line{End: true})
}
