package faults

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/shared/faults/internal/feed"
)

const (
	// stepBound is how many reconciliations one operation may cost. A controller that needs more does not come to rest.
	stepBound = 400
	// horizon is how far the clock is moved for a timer.
	horizon = time.Hour
	// quietTimers is how many timers may fire, one after the other, without a write or a fault before the next is awaited no
	// more: what they wait for does not come.
	quietTimers = 4
)

// settle lets everything happen that is due, until nothing is left, or for so many steps if the number is not 0.
func (tr *trial) settle(ctx context.Context, steps int) {
	begin, quiet, progress := tr.steps, 0, tr.progress
	for tr.goesOn(tr.steps-begin, steps) {
		switch {
		case tr.revive(ctx):
		case tr.paused != nil && tr.steps >= tr.pausedUntil:
			tr.resume()
		case tr.process.deliver(false):
		case tr.reconcileNext(ctx):
		case tr.act(ctx):
		case tr.process.deliver(true):
		case tr.paused != nil:
			tr.resume()
		case progress != tr.progress:
			quiet, progress = 0, tr.progress
		case quiet == quietTimers || !tr.fireTimer():
			return
		default:
			quiet++
		}
	}
}

// goesOn reports whether there may be more reconciliations after so many, of which there may be a number if it is not 0.
func (tr *trial) goesOn(done, steps int) bool {
	if done > stepBound {
		tr.alarm("steady state", tr.lastWritten(), fmt.Sprintf("after %d reconciliations there is no steady state; the last writes: %s", stepBound, strings.Join(tr.recentWrites(), ", ")))
	}
	return tr.failure == nil && (steps == 0 || done < steps)
}

// revive starts a process if none is alive.
func (tr *trial) revive(ctx context.Context) bool {
	if tr.process != nil && !tr.process.dead.Load() {
		return false
	}
	if tr.process != nil {
		if err := tr.process.stop(); err != nil {
			tr.alarm("harness", "the process", err.Error())
			return true
		}
	}
	behind := tr.travel
	tr.travel = 0
	if behind > 0 {
		tr.line("a new process starts, its cache %d events behind", behind)
	} else {
		tr.line("a new process starts")
	}
	process, err := tr.startProcess(ctx, behind)
	if err != nil {
		tr.process = nil
		tr.alarm("harness", "the process", err.Error())
		return true
	}
	tr.process = process
	return true
}

// reconcileNext hands the next key out, and reports whether there was one.
func (tr *trial) reconcileNext(ctx context.Context) bool {
	queue, keys := tr.process.nextQueue()
	if queue == nil {
		return false
	}
	key := keys[0]
	at := tr.occurrenceOf("KEY " + queue.Name + "/" + tr.names.symbolOf(key.Name))
	for _, fault := range tr.hits(at) {
		switch {
		case fault.Kind == "order" && len(keys) > 1:
			tr.line("fault order: %s waits", at)
			key = keys[1]
		case fault.Kind == "clock":
			tr.step(fault.Arg)
		case strings.HasPrefix(fault.Kind, "op/"):
			tr.interpose(ctx, strings.TrimPrefix(fault.Kind, "op/"))
		}
	}
	tr.steps++
	tr.line("reconcile %s %s", queue.Name, tr.names.symbolOf(key.Name))
	queue.Hand(key)
	tr.awaitStep(tr.process, queue, key)
	return true
}

// awaitStep waits until a key has been processed, or its process is paused.
func (tr *trial) awaitStep(p *process, queue *feed.Queue, key reconcile.Request) {
	select {
	case <-queue.Processed():
		queue.Sort()
	case steps := <-p.parked:
		tr.paused, tr.pausedQueue, tr.pausedKey, tr.pausedUntil = p, queue, key, tr.steps+max(1, steps)
		tr.process = nil
	case <-time.After(stepLimit):
		tr.alarm("stuck", tr.names.symbolOf(key.Name), fmt.Sprintf("the reconciliation of %s by %s does not end", key, queue.Name))
		p.die()
		p.cancel()
	}
}

// resume lets a paused process go on with its reconciliation. It has lost its lease, and ends after it.
func (tr *trial) resume() {
	p := tr.paused
	tr.line("the paused process goes on")
	p.resume <- struct{}{}
	tr.awaitStep(p, tr.pausedQueue, tr.pausedKey)
	tr.paused = nil
	tr.line("the paused process ends")
	if err := p.stop(); err != nil {
		tr.alarm("harness", "the process", err.Error())
	}
}

// nextQueue returns the queue that has waited longest for its turn, and its keys.
func (p *process) nextQueue() (*feed.Queue, []reconcile.Request) {
	for range p.queues {
		queue := p.queues[0]
		p.queues = append(p.queues[1:], queue)
		if keys := queue.Ready(); len(keys) > 0 {
			return queue, keys
		}
	}
	return nil, nil
}

// act lets the actors make one step.
func (tr *trial) act(ctx context.Context) bool {
	defer func() { tr.turn = "user" }()
	for _, actor := range tr.suite.Actors {
		tr.turn = actor.Name()
		acted, err := actor.Act(ctx, tr.state)
		if err != nil {
			tr.alarm("harness", actor.Name(), err.Error())
		}
		if acted {
			return true
		}
	}
	return false
}

// fireTimer moves the clock to the next timer, and reports whether there is one.
func (tr *trial) fireTimer() bool {
	var next time.Time
	for _, queue := range tr.process.queues {
		for _, timer := range queue.Timers() {
			if next.IsZero() || timer.At.Before(next) {
				next = timer.At
			}
		}
	}
	now := tr.state.Clock.Now()
	if next.IsZero() || next.Sub(now) > horizon {
		return false
	}
	if next.After(now) {
		tr.state.Clock.SetTime(next)
	}
	tr.line("time: %v later", next.Sub(now).Round(time.Millisecond))
	for _, queue := range tr.process.queues {
		queue.Fire()
	}
	return true
}

// step moves the clock, by seconds; timers that are due then fire.
func (tr *trial) step(seconds int) {
	tr.line("fault clock: %d s later", seconds)
	tr.state.Clock.Step(time.Duration(seconds) * time.Second)
	if tr.process == nil {
		return
	}
	for _, queue := range tr.process.queues {
		queue.Fire()
	}
}
