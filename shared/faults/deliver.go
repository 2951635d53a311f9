package faults

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"example.com/workbook/shared/faults/internal/feed"
)

// longestStale is how many reconciliations a cache is behind, at most. A cache that lacks for ever that an owner was deleted
// has its dependents created again for ever: that is no bug.
const longestStale = 20

// feeding is what one informer of one process has been given of the history of its kind.
type feeding struct {
	*feed.Informer
	process  *process
	resource schema.GroupResource
	sample   runtime.Object
	selector labels.Selector

	next int // the position of the next event
	own  int // the position after the last write of this process
	// named is the position up to which the events have their names, so that each meets its faults once.
	named int

	held   int  // the step before which nothing is delivered
	frozen bool // nothing is delivered until the next operation is done
	behind int  // so many events are kept back
	thaw   int  // the step at which that ends at the latest
	cut    bool // the watch is cut: events are lost, until a list
	// merging is an event that waits for the next one of its object.
	merging *happening
	repeat  bool // the next event is delivered twice
}

func (p *process) newFeeding(sample runtime.Object, behind int) (*feeding, error) {
	operator := p.trial.suite.Operator
	gvk, err := apiutil.GVKForObject(sample, operator.Scheme)
	if err != nil {
		return nil, err
	}
	if err := p.trial.server.hub.watch(gvk); err != nil {
		return nil, err
	}
	resource, err := p.trial.server.hub.resourceOf(gvk)
	if err != nil {
		return nil, err
	}
	selector, err := selectorOf(operator.Cache, operator.Scheme, gvk)
	if err != nil {
		return nil, err
	}
	p.trial.permissions.noteWatch(resource)
	f := &feeding{process: p, resource: resource, sample: sample, selector: selector}
	f.next = max(0, len(f.events(0))-behind)
	f.named, f.own = len(f.events(0)), f.next
	if behind > 0 {
		f.held = p.trial.steps + behind
	}
	return f, nil
}

func (f *feeding) events(from int) []happening {
	return f.process.trial.server.hub.from(f.process.trial.state.Namespace, f.resource, from)
}

// begin returns the first list: what there was at the position where the process begins.
func (f *feeding) begin() []client.Object {
	state := map[types.UID]*unstructured.Unstructured{}
	var order []types.UID
	for _, event := range f.events(0)[:f.next] {
		uid := event.object.GetUID()
		if event.what == watch.Deleted {
			delete(state, uid)
			continue
		}
		if state[uid] == nil {
			order = append(order, uid)
		}
		state[uid] = event.object
	}
	var objects []client.Object
	for _, uid := range order {
		if object := state[uid]; object != nil && f.selector.Matches(labels.Set(object.GetLabels())) {
			delete(state, uid)
			if typed, err := f.typed(object); err == nil {
				objects = append(objects, typed)
			}
		}
	}
	return objects
}

func (f *feeding) typed(object *unstructured.Unstructured) (client.Object, error) {
	return feed.Typed(f.process.trial.suite.Operator.Scheme, f.sample, object.Object)
}

// name gives the new events their names, and each meets its faults.
func (f *feeding) name() {
	tr := f.process.trial
	if tr.process != f.process {
		return
	}
	for _, event := range f.events(f.named) {
		f.named++
		at := tr.occurrence(string(event.what), f.resource, tr.symbol(f.resource, event.object.GetName()), "")
		for _, fault := range tr.hits(at) {
			tr.line("  fault %s on %s", fault.Kind, at)
			switch fault.Kind {
			case "delay":
				f.held = tr.steps + max(1, fault.Arg)
			case "freeze":
				f.frozen, f.thaw = true, tr.steps+longestStale
			case "behind":
				f.behind, f.thaw = max(1, fault.Arg), tr.steps+longestStale
			case "cut":
				f.cut, f.held = true, tr.steps+max(1, fault.Arg)
			case "duplicate":
				f.repeat = true
			case "coalesce":
				f.merging = &event
				f.held = tr.steps + longestStale
			}
		}
		if m := f.merging; m != nil && m.order != event.order && m.object.GetName() == event.object.GetName() {
			f.held = 0
		}
	}
}

// due reports whether the next event can be delivered. idle says that nothing else is left to do.
func (f *feeding) due(idle bool) bool {
	f.name()
	if f.process.trial.steps >= f.thaw {
		f.frozen, f.behind = false, 0
	}
	pending := len(f.events(f.next))
	if pending == 0 && !f.cut {
		return false
	}
	switch {
	case f.frozen:
		return false
	case idle:
		f.held, f.behind = 0, 0
		return true
	}
	return f.process.trial.steps >= f.held && pending > f.behind
}

// deliver delivers one event, or, where the watch was cut or events are merged, what a list shows.
func (f *feeding) deliver() {
	tr := f.process.trial
	if f.cut || f.merging != nil {
		f.cut, f.merging = false, nil
		tr.line("event: %s are listed again", f.resource.Resource)
		f.relist()
		return
	}
	events := f.events(f.next)
	if len(events) == 0 {
		return
	}
	f.next++
	f.one(events[0])
	if f.repeat {
		f.repeat = false
		f.one(events[0])
	}
}

func (f *feeding) one(event happening) {
	tr := f.process.trial
	tr.line("event: %s %s/%s", event.what, f.resource.Resource, tr.symbol(f.resource, event.object.GetName()))
	object, err := f.typed(event.object)
	if err == nil && (event.what == watch.Deleted || !f.selector.Matches(labels.Set(event.object.GetLabels()))) {
		err = f.Delete(object, false)
	} else if err == nil {
		err = f.Set(object)
	}
	if err != nil {
		tr.alarm("harness", f.resource.Resource, fmt.Sprintf("delivering an event: %v", err))
	}
}

// relist brings the informer to what there is now, without what was in between.
func (f *feeding) relist() {
	f.next = len(f.events(0))
	there := map[string]bool{}
	for _, object := range f.begin() {
		there[object.GetName()] = true
		if old := f.Has(object); old == nil || old.GetResourceVersion() != object.GetResourceVersion() {
			_ = f.Set(object)
		}
	}
	for _, object := range f.All() {
		if !there[object.GetName()] {
			_ = f.Delete(object, true)
		}
	}
}

// deliver delivers one event of any kind, the oldest that is due, and reports whether there was one.
func (p *process) deliver(idle bool) bool {
	var oldest *feeding
	order := math.MaxInt
	p.mu.Lock()
	feeds := append([]*feeding(nil), p.feeds...)
	p.mu.Unlock()
	for _, one := range feeds {
		if !one.due(idle) {
			continue
		}
		first := 0
		if events := one.events(one.next); len(events) > 0 {
			first = events[0].order
		}
		if first < order {
			oldest, order = one, first
		}
	}
	if oldest == nil {
		return false
	}
	p.feeding(oldest.deliver)
	return true
}

// feeding calls what delivers events, and puts the keys in order that these enqueued.
func (p *process) feeding(deliver func()) {
	p.delivering.Store(true)
	deliver()
	p.delivering.Store(false)
	for _, queue := range p.queues {
		queue.Sort()
	}
}

// noteWrite notes that the history has a write of this process by now.
func (p *process) noteWrite(resource schema.GroupResource) {
	for _, one := range p.feeds {
		if one.resource == resource {
			one.own = len(one.events(0))
		}
	}
}

// beforeRead delivers the process's own writes of a kind, if the operator waits for them.
func (p *process) beforeRead(about runtime.Object) {
	if !p.trial.readYourWrites || p.delivering.Load() {
		return
	}
	gvk, err := apiutil.GVKForObject(about, p.trial.suite.Operator.Scheme)
	if err != nil {
		return
	}
	for _, one := range p.feeds {
		own, err := apiutil.GVKForObject(one.sample, p.trial.suite.Operator.Scheme)
		if err != nil || (own.Kind != gvk.Kind && own.Kind+"List" != gvk.Kind) || own.Group != gvk.Group {
			continue
		}
		for one.next < one.own {
			one.name()
			p.feeding(one.deliver)
		}
	}
}
