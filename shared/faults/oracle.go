package faults

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// checkInvariants checks what holds after every write.
func (tr *trial) checkInvariants(ctx context.Context, on string) {
	for _, invariant := range tr.suite.Invariants {
		if err := safely(ctx, invariant, tr.state); err != nil {
			tr.alarm("invariant: "+invariant.Name, on, err.Error())
		}
	}
}

// safely turns a panic of an invariant into what it says.
func safely(ctx context.Context, invariant Invariant, state *State) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panics: %v", r)
		}
	}()
	return invariant.Check(ctx, state)
}

// checkSteady checks what holds when nothing is left to do.
func (tr *trial) checkSteady(ctx context.Context) {
	if tr.failure != nil || tr.frozen() {
		return
	}
	tr.state.Steady = true
	defer func() { tr.state.Steady = false }()
	tr.state.Last = Write{}
	tr.checkInvariants(ctx, "the steady state")
	for _, resource := range tr.server.hub.resources() {
		for _, object := range tr.server.hub.live(tr.state.Namespace, resource) {
			// Without finalizers it is a pod whose node does not respond.
			if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) > 0 {
				tr.alarm("finalizers", resource.Resource+"/"+tr.symbol(resource, object.GetName()),
					fmt.Sprintf("it is deleted, and keeps the finalizers %v", object.GetFinalizers()))
			}
		}
	}
}

// checkSilence checks that a new process, which finds everything as it should be, writes nothing.
func (tr *trial) checkSilence(ctx context.Context) {
	if tr.failure != nil {
		return
	}
	tr.line("all is done: a new process has nothing to write")
	tr.over = true
	before := tr.writesOfOperator()
	tr.process.die()
	tr.settle(ctx, 0)
	after := tr.writesOfOperator()
	for _, on := range slices.Sorted(maps.Keys(after)) {
		if after[on] != before[on] {
			tr.alarm("silence", on, fmt.Sprintf("a restart in steady state writes it %d times", after[on]-before[on]))
		}
	}
}

func (tr *trial) writesOfOperator() map[string]int {
	sums := map[string]int{}
	for on, one := range tr.counts {
		sums[on] = one.Creates + one.Updates + one.Deletes
	}
	return sums
}

// expectation is an undisturbed run of the same operations.
type expectation struct {
	outcome
	masked map[string]bool // paths that differ between two of them, by kind
}

// ofKind is a path without the name of the object: what differs for one object differs for all of its kind.
func ofKind(path string) string {
	parts := strings.SplitN(path, "\x00", 3)
	parts[1], _, _ = strings.Cut(parts[1], "/")
	return strings.Join(parts, "\x00")
}

// compare compares a run with the undisturbed one.
func (e *expectation) compare(suite *Suite, s *server, schedule Schedule, is outcome) *Failure {
	if schedule.anyMoment() {
		return nil
	}
	for _, one := range suite.differences(e.objects, is.objects) {
		if e.masked[ofKind(one.path)] {
			continue
		}
		object, _, _ := strings.Cut(strings.TrimPrefix(one.path, "\x00"), "\x00")
		return &Failure{Oracle: "final state", On: object, Message: strings.ReplaceAll(strings.TrimPrefix(one.path, "\x00"), "\x00", ".") + ": " + one.text}
	}
	once := map[string]bool{}
	for _, kind := range suite.Once {
		if resource, err := resourceOf(s, suite, kind); err == nil {
			once[resource.Resource] = true
		}
	}
	slack := 4 * (1 + schedule.weight())
	for _, on := range slices.Sorted(maps.Keys(is.counts)) {
		seen, should := is.counts[on], e.counts[on]
		if should == nil {
			should = &count{}
		}
		switch {
		case once[strings.SplitN(on, "/", 2)[0]] && (seen.Creates > should.Creates || seen.Deletes > should.Deletes):
			return &Failure{Oracle: "counts", On: on, Message: fmt.Sprintf("created %d times and deleted %d times, undisturbed %d and %d", seen.Creates, seen.Deletes, should.Creates, should.Deletes)}
		case seen.Updates > 2*should.Updates+slack:
			return &Failure{Oracle: "counts", On: on, Message: fmt.Sprintf("changed %d times, undisturbed %d", seen.Updates, should.Updates)}
		}
	}
	if is.events > 2*e.events+slack {
		return &Failure{Oracle: "events", On: "all", Message: fmt.Sprintf("%d Events, undisturbed %d", is.events, e.events)}
	}
	return nil
}

// differences is where the objects of two runs differ.
func (s *Suite) differences(should, is map[string]any) []difference {
	return slices.DeleteFunc(differences("", should, is), func(one difference) bool { return sameLines(s.Unordered, one) })
}

// difference is where two values differ. The parts of its path are separated by NUL: keys may have dots.
type difference struct {
	path, text string
	should, is any
}

func differences(path string, should, is any) []difference {
	if left, ok := should.(map[string]any); ok {
		if right, ok := is.(map[string]any); ok {
			var all []difference
			keys := maps.Clone(left)
			maps.Copy(keys, right)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				all = append(all, differences(path+"\x00"+key, left[key], right[key])...)
			}
			return all
		}
	}
	if left, ok := should.([]any); ok {
		if right, ok := is.([]any); ok && len(left) == len(right) {
			var all []difference
			for i := range left {
				all = append(all, differences(fmt.Sprintf("%s\x00%d", path, i), left[i], right[i])...)
			}
			return all
		}
	}
	if reflect.DeepEqual(should, is) {
		return nil
	}
	return []difference{{path, fmt.Sprintf("%s, undisturbed %s", brief(is), brief(should)), should, is}}
}

func brief(value any) string {
	if value == nil {
		return "nothing"
	}
	text := fmt.Sprint(value)
	if len(text) > 200 {
		return text[:200] + " …"
	}
	return text
}

// sameLines reports whether two texts have the same lines, and their path ends in one of those whose lines have no order.
func sameLines(unordered map[string]string, one difference) bool {
	should, isText := one.should.(string)
	is, isTextToo := one.is.(string)
	if !isText || !isTextToo || !slices.Equal(sortedLines(should), sortedLines(is)) {
		return false
	}
	dotted := strings.ReplaceAll(one.path, "\x00", ".")
	for path := range unordered {
		if strings.HasSuffix(dotted, strings.TrimPrefix(path, "$")) {
			return true
		}
	}
	return false
}

func sortedLines(text string) []string { return slices.Sorted(strings.Lines(text)) }

func (tr *trial) resourceOf(kind client.Object) (schema.GroupResource, error) {
	return resourceOf(tr.server, tr.suite, kind)
}

func resourceOf(s *server, suite *Suite, kind client.Object) (schema.GroupResource, error) {
	gvk, err := apiutil.GVKForObject(kind, suite.Operator.Scheme)
	if err != nil {
		return schema.GroupResource{}, err
	}
	return s.hub.resourceOf(gvk)
}
