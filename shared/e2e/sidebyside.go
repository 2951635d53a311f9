package e2e

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

// sideBySideTimeout is for all scenarios of one SideBySide.
const sideBySideTimeout = 10 * time.Minute

// Scenario is a spec that spends most of its time waiting, and minds no other beside it.
type Scenario struct {
	Name    string
	Labels  ginkgo.Labels
	Options []NamespaceOption
	// Run asserts with the Gomega that it is given, not with the package's functions: those would fail
	// whichever spec is waiting then. It waits for nothing without a limit, and for nothing that another
	// scenario does.
	Run func(ctx context.Context, g gomega.Gomega, namespace string)
}

// SideBySide declares a spec for each scenario. All scenarios begin with the first spec, atOnce at a time, each
// in a namespace of its own, and each spec waits for its own. Call it where a container is declared.
func (e *Env) SideBySide(text string, atOnce int, scenarios ...Scenario) bool {
	return ginkgo.Describe(text, ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		all := &sideBySide{env: e, places: make(chan struct{}, atOnce), runs: map[string]*run{}}

		ginkgo.BeforeAll(func(ctx ginkgo.SpecContext) {
			for _, scenario := range scenarios {
				if e.isWanted(scenario) {
					all.begin(ctx, scenario)
				}
			}
		})

		for _, scenario := range scenarios {
			ginkgo.It(scenario.Name, scenario.Labels, func(ctx ginkgo.SpecContext) {
				r, begun := all.runs[scenario.Name]
				if !begun {
					r = all.begin(ctx, scenario)
				}
				e.Concerns(r.namespace)
				gomega.Eventually(ctx, r.ended).WithTimeout(sideBySideTimeout).Should(gomega.BeClosed())
				if r.failure != "" {
					ginkgo.Fail(r.failure)
				}
			})
		}
	})
}

// isWanted tells whether the spec of a scenario will run, as far as its container can know.
func (e *Env) isWanted(scenario Scenario) bool {
	if slices.Contains(scenario.Labels, LabelContainers) && !e.Cluster.RunsContainers() {
		return false
	}
	text := strings.Join(append(ginkgo.CurrentSpecReport().ContainerHierarchyTexts, scenario.Name), " ")
	config, _ := ginkgo.GinkgoConfiguration()
	return len(config.FocusStrings) == 0 || slices.ContainsFunc(config.FocusStrings, func(focus string) bool {
		return regexp.MustCompile(focus).MatchString(text)
	})
}

// sideBySide are the scenarios of one container that are under way, or have ended.
type sideBySide struct {
	env    *Env
	places chan struct{}
	runs   map[string]*run
}

// run is one of them.
type run struct {
	namespace string
	// failure is what the scenario failed with, once ended is closed; empty if it did not.
	failure string
	ended   chan struct{}
}

// begin has a scenario begin as soon as there is a place for it.
func (s *sideBySide) begin(ctx context.Context, scenario Scenario) *run {
	// Longer than the present node.
	begun, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ginkgo.DeferCleanup(cancel)
	r := &run{namespace: s.env.Namespace(ctx, scenario.Options...), ended: make(chan struct{})}
	s.runs[scenario.Name] = r
	go func() {
		s.places <- struct{}{}
		defer func() { <-s.places; close(r.ended) }()
		r.live(begun, scenario)
	}()
	return r
}

// live lives through the scenario. A failed assertion ends the goroutine, and a panic is a failure.
func (r *run) live(ctx context.Context, scenario Scenario) {
	defer func() {
		if panicked := recover(); panicked != nil {
			r.failure = fmt.Sprintf("%v\n%s", panicked, debug.Stack())
		}
	}()
	scenario.Run(ctx, gomega.NewGomega(func(message string, skip ...int) {
		r.failure = fmt.Sprintf("%s\n%s", types.NewCodeLocation(skip[0]+1), message)
		runtime.Goexit()
	}), r.namespace)
}
