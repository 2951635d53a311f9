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

	// left are the running tasks, and the rank of each; nil until the job has ranks.
	left map[int]int
	// code is the highest exit code so far, and signal the signal that caused it, if one did.
	code   int
	signal syscall.Signal
	// raised is set if the job itself has failed: its tasks are being ended.
	raised bool
	// fixed is set if code is final.
	fixed bool
}

// submit accepts a job from a client.
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

// start assigns ranks to a job. Its tasks are numbered from rank to rank.
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
		l.send(s.rank, m)
	}
}

// send sends a message to a rank, which may be this one.
func (l *leader) send(rank int, m wire.Message) {
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
		_ = member.conn.Send(m) // the receiver notices a lost connection
	}
}

// take handles a rank's messages about its tasks, in their order. The receiver of the connection calls it.
func (l *leader) take(rank int, m wire.Message) {
	if m.Type == wire.Output {
		if client, found := l.clients.Load(m.Job); found {
			_ = client.(*wire.Conn).Send(m) // a client may end before its job
		}
		return
	}
	l.post(func() {
		if j := l.jobs[m.Job]; j != nil {
			j.taskEnded(l, rank, m)
		}
	})
}

// taskEnded records that a task has ended.
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

// exitTimeout ends the tasks that outlive the first one for too long; the exit code of the job is then that of the
// first one.
func (j *job) exitTimeout(l *leader, rank int, first wire.Message) {
	if j.raised {
		return
	}
	j.fixed, j.code, j.signal = true, first.Code, first.Signal
	j.raise(l, "exec", fmt.Sprintf("%s: task rank %d on host %s exited (Exit %d) and exit-timeout=%s has expired",
		j.work.Args[0], first.Task, l.hosts(rank), first.Code, j.work.ExitTimeout))
}

// loseRank is called when a rank is lost. If tasks of the job were on it, the job fails.
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

// raise reports the failure of a job and ends its tasks: with TERM, and then, if they do not end, with KILL.
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

// after calls a function for a job if the job still exists then.
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
		l.send(rank, wire.Message{Type: wire.Signal, Job: j.id, Signal: s})
	}
}

// endIfDone reports the end of the job to the client once no task is left.
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
	_ = j.client.Send(wire.Message{Type: wire.Done, Code: j.code}) // a client may end before its job
	l.schedule()
	l.leaveIfIdle()
}

// note writes a line to the client's standard error.
func (j *job) note(format string, args ...any) {
	text := strings.TrimSuffix(fmt.Sprintf(format, args...), "\n") + "\n"
	_ = j.client.Send(wire.Message{Type: wire.Note, Text: text}) // a client may end before its job
}

// age is the age of a job in seconds.
func (j *job) age(l *leader) float64 { return l.now().Sub(j.born).Seconds() }
