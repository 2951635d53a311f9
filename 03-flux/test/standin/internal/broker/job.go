package broker

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/workbook/03-flux/test/standin/internal/wire"
	"example.com/workbook/03-flux/test/standin/internal/words"
)

// job is one `flux run`.
type job struct {
	id     int
	work   *wire.Work
	client *wire.Conn
	born   time.Time

	// left are the tasks that run, and the rank of each; nil until there are ranks.
	left map[int]int
	// code is the highest exit code yet, signal what made it, if a signal did.
	code   int
	signal syscall.Signal
	// raised is whether something went wrong with the job itself: its tasks are being ended.
	raised bool
	// fixed is whether code is final.
	fixed bool
}

// submit takes a job from a client.
func (l *leader) submit(client *wire.Conn, work *wire.Work) *job {
	l.lastJob++
	j := &job{id: l.lastJob, work: work, client: client, born: l.now()}
	l.jobs[j.id] = j
	l.clients.Store(j.id, client)
	if err := l.feasible(work); err != nil {
		j.raise(l, "alloc", err.Error())
		return j
	}
	if l.state != running {
		j.raise(l, "cancel", "the instance is ending")
		return j
	}
	l.pending = append(l.pending, j)
	l.schedule()
	return j
}

// start gives a job its ranks. Its tasks are numbered from rank to rank.
func (j *job) start(l *leader, shares []share) {
	j.left = map[int]int{}
	j.work.Nodes = len(shares)
	next := 0
	for _, s := range shares {
		m := wire.Message{Type: wire.Start, Job: j.id, Work: j.work}
		for range s.tasks {
			j.left[next] = s.rank
			m.Tasks = append(m.Tasks, next)
			next++
		}
		l.members[s.rank].used += s.tasks
		l.tell(s.rank, m)
	}
}

// tell sends a message to a rank, which may be this one.
func (l *leader) tell(rank int, m wire.Message) {
	if rank == 0 {
		switch m.Type {
		case wire.Start:
			l.executor.start(m)
		case wire.Signal:
			l.executor.signal(m.Job, m.Signal)
		}
		return
	}
	if member := l.members[rank]; member != nil {
		_ = member.conn.Send(m) // who reads from it will see
	}
}

// take is called with what a rank says of its tasks, in its order, by who reads from it.
func (l *leader) take(rank int, m wire.Message) {
	if m.Type == wire.Output {
		if client, found := l.clients.Load(m.Job); found {
			_ = client.(*wire.Conn).Send(m) // a client may go before its job
		}
		return
	}
	l.post(func() {
		if j := l.jobs[m.Job]; j != nil {
			j.taskEnded(l, rank, m)
		}
	})
}

// taskEnded counts a task that has ended.
func (j *job) taskEnded(l *leader, rank int, m wire.Message) {
	if at, isLeft := j.left[m.Task]; !isLeft || at != rank {
		return
	}
	delete(j.left, m.Task)
	if l.members[rank] != nil {
		l.members[rank].used--
	}
	if m.Code > j.code && !j.fixed {
		j.code, j.signal = m.Code, m.Signal
	}
	if m.Text != "" {
		text := fmt.Sprintf("task %d (host %s): start failed: %s", m.Task, l.hosts(rank), m.Text)
		j.note("%.3fs: flux-shell[%d]: FATAL: %s", j.age(l), rank, text)
		j.raise(l, "exec", text)
	}
	if len(j.left) > 0 && len(j.left) == j.work.Tasks-1 && j.work.ExitTimeout > 0 {
		l.after(j.work.ExitTimeout, j, func() { j.exitTimeout(l, rank, m) })
	}
	j.endIfDone(l)
}

// exitTimeout ends the tasks that have outlived the first by too long; its exit code is the job's then.
func (j *job) exitTimeout(l *leader, rank int, first wire.Message) {
	if j.raised {
		return
	}
	j.fixed, j.code, j.signal = true, first.Code, first.Signal
	j.raise(l, "exec", fmt.Sprintf("%s: task rank %d on host %s exited (Exit %d) and exit-timeout=%s has expired",
		j.work.Args[0], first.Task, l.hosts(rank), first.Code, j.work.ExitTimeout))
}

// loseRank is called when a rank is lost. If tasks of the job were on it, so is the job.
func (j *job) loseRank(l *leader, rank int) {
	had := len(j.left)
	for task, at := range j.left {
		if at == rank {
			delete(j.left, task)
		}
	}
	if len(j.left) < had {
		j.raise(l, "exec", "node failure on "+l.names(rank))
		j.endIfDone(l)
	}
}

// raise says what is wrong with a job and ends its tasks: with TERM, and, if they stay, with KILL.
func (j *job) raise(l *leader, kind, text string) {
	if j.raised {
		return
	}
	j.raised = true
	j.note("%.3fs: job.exception f%d type=%s severity=0 %s", j.age(l), j.id, kind, text)
	l.pending = slices.DeleteFunc(l.pending, func(p *job) bool { return p == j })
	j.kill(l, syscall.SIGTERM)
	l.after(l.config.KillTimeout, j, func() { j.kill(l, syscall.SIGKILL) })
	j.endIfDone(l)
}

// after does something for a job that is still there then.
func (l *leader) after(d time.Duration, j *job, f func()) {
	time.AfterFunc(d, func() {
		l.post(func() {
			if l.jobs[j.id] == j {
				f()
			}
		})
	})
}

// kill sends a signal to all tasks.
func (j *job) kill(l *leader, s syscall.Signal) {
	ranks := map[int]bool{}
	for _, rank := range j.left {
		ranks[rank] = true
	}
	for rank := range ranks {
		l.tell(rank, wire.Message{Type: wire.Signal, Job: j.id, Signal: s})
	}
}

// endIfDone tells the client how the job ended, once nothing of it is left.
func (j *job) endIfDone(l *leader) {
	if len(j.left) > 0 || (j.left == nil && !j.raised) || l.jobs[j.id] != j {
		return
	}
	delete(l.jobs, j.id)
	l.clients.Delete(j.id)
	switch {
	case j.signal != 0:
		j.note("flux-job: task(s) %s", words.Signal(j.signal))
	case j.code != 0:
		j.note("flux-job: task(s) exited with exit code %d", j.code)
	case j.raised:
		j.code = 1
	}
	_ = j.client.Send(wire.Message{Type: wire.Done, Code: j.code}) // a client may go before its job
	l.schedule()
	l.leaveIfIdle()
}

// note is a line on the client's standard error.
func (j *job) note(format string, args ...any) {
	text := strings.TrimSuffix(fmt.Sprintf(format, args...), "\n") + "\n"
	_ = j.client.Send(wire.Message{Type: wire.Note, Text: text}) // a client may go before its job
}

// age of a job, in seconds.
func (j *job) age(l *leader) float64 { return l.now().Sub(j.born).Seconds() }
