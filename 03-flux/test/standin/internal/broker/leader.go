package broker

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"example.com/workbook/03-flux/test/standin/internal/options"
	"example.com/workbook/03-flux/test/standin/internal/wire"
)

// state is the state of an instance, as its leader sees it.
type state int

const (
	starting state = iota // rc1
	waiting               // for the quorum
	running               // the initial program
	cleaning              // of jobs that the program has left running
	leaving               // followers have been requested to end
	over
)

// leader is rank 0.
type leader struct {
	*broker
	timing   options.Timing
	state    state
	rc1, rc2 *program
	executor *executor
	members  map[int]*member
	warned   bool
	exitCode int

	jobs    map[int]*job
	pending []*job // those without ranks yet, in the order of their submission
	lastJob int
	// clients are the connections of the jobs' clients. Output is passed on directly, and is not an event.
	clients sync.Map
}

// lead runs rank 0.
func (b *broker) lead(signals <-chan os.Signal) int {
	l := &leader{broker: b, members: map[int]*member{}, jobs: map[int]*job{}}
	var err error
	if l.timing, err = b.prepare(); err != nil {
		return exitRejected
	}
	if l.rc2, err = newRC2(b.options.Program); err != nil {
		b.log.printf(crit, "broker", "%v", err)
		return exitRejected
	}
	if b.size() > 1 {
		if err := l.listen(); err != nil {
			b.log.printf(fail, "overlay", "%v", err)
			return exitRejected
		}
	}
	if err := b.serve(l.respond); err != nil {
		b.log.printf(crit, "broker", "%v", err)
		return exitRejected
	}
	l.executor = newExecutor(func(m wire.Message) { l.take(0, m) })
	l.members[0] = &member{cores: runtime.NumCPU()}
	l.begin()
	warn := ticker(l.timing.QuorumWarn)
	for l.state != over {
		select {
		case event := <-b.events:
			event()
		case s := <-signals:
			l.signal(s)
		case <-warn:
			l.warn()
		}
	}
	return l.exitCode
}

// ticker ticks, or, with 0, does not.
func ticker(d time.Duration) <-chan time.Time {
	if d == 0 {
		return nil
	}
	return time.Tick(d)
}

// begin runs rc1, if there is one, and then waits for the quorum.
func (l *leader) begin() {
	wait := func() {
		l.state = waiting
		for _, m := range l.members {
			l.welcome(m)
		}
		l.join(0, l.members[0])
	}
	if l.rc1 = newRC1(l.options.Attributes["broker.rc1_path"]); l.rc1 == nil {
		wait()
		return
	}
	l.run(l.rc1, func(code int) {
		if code == 0 {
			wait()
			return
		}
		l.exitCode = code
		l.leave()
	})
}

// signal handles a signal. As long as the leader waits for the quorum, the instance ends as if it had succeeded, with
// 0.
func (l *leader) signal(s os.Signal) {
	l.log.printf(info, "broker", "signal %d", s.(syscall.Signal))
	switch l.state {
	case starting:
		l.rc1.abort()
	case waiting:
		l.leave()
	case running:
		l.rc2.abort()
	}
}

// finish follows the end of the initial program: jobs that still run are cancelled, then all brokers end.
func (l *leader) finish(code int) {
	l.exitCode = code
	l.state = cleaning
	for _, id := range l.ids() {
		l.jobs[id].raise(l, "cancel", "the initial program has ended")
	}
	l.leaveIfIdle()
}

// leaveIfIdle ends the instance once no job is left.
func (l *leader) leaveIfIdle() {
	if l.state == cleaning && len(l.jobs) == 0 {
		l.leave()
	}
}

// leave requests the followers to end, and waits for them up to the shutdown timeout.
func (l *leader) leave() {
	l.state = leaving
	for _, m := range l.members {
		if m.conn != nil {
			_ = m.conn.Send(wire.Message{Type: wire.Shutdown}) // the receiver notices a lost connection
		}
	}
	if l.timing.ShutdownTimeout >= 0 {
		time.AfterFunc(l.timing.ShutdownTimeout, func() {
			l.post(func() {
				if l.state == leaving {
					l.log.printf(fail, "broker", "shutdown timeout")
					l.state = over
				}
			})
		})
	}
	l.leaveIfAlone()
}

func (l *leader) leaveIfAlone() {
	if len(l.members) <= 1 { // rank 0 itself
		l.state = over
	}
}
