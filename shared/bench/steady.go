package bench

import (
	"fmt"
	"io"
	"time"

	"example.com/workbook/shared/audit"
)

// steadyTime is how long an operator is watched in steady state.
const steadyTime = 30 * time.Second

// Steady is what an operator costs that has nothing to do.
type Steady struct {
	objects int
	what    string
	// requests are those of steadyTime, without watches and leases.
	requests int
	// cpu and serverCPU are the CPU time of steadyTime.
	cpu, serverCPU time.Duration
	memory         uint64
	// synced and reconciled are the times from the start of the process until its caches were synced and workers began,
	// and until it had looked at every object. The rest is what that cost.
	synced, reconciled     time.Duration
	restartCPU, restartAPI time.Duration
	restartPeak            uint64
	restartWrites          int
}

// Steady restarts the operator, waits until it has looked at all objects, and then watches it. There must be so many
// reconciliations after a restart.
func (b *Bench) Steady(objects int, what string, reconciliations int) Steady {
	b.Helper()
	s := Steady{objects: objects, what: what}
	// What is not done yet would be done after the restart.
	b.WaitQuiet()
	b.Must(b.Operator().Stop(b.Ctx))
	b.WaitQuiet()
	began, server := time.Now(), b.ServerCPU()
	b.Must(b.Operator().Start(b.Ctx))
	watched := b.sample(b.Operator().Pid())
	b.Until("the restarted operator to have looked at all objects", 50*time.Millisecond, func() bool {
		n := b.Reconciliations()
		if n > 0 && s.synced == 0 {
			s.synced = time.Since(began)
		}
		return n >= float64(reconciliations)
	})
	s.reconciled = time.Since(began)
	b.WaitQuiet()
	watched.stop()
	s.restartCPU, s.restartPeak = watched.used(began, time.Now())
	s.restartAPI = b.ServerCPU() - server
	s.restartWrites = len(b.requests(began, audit.Writes()))

	began, server = time.Now(), b.ServerCPU()
	watched = b.sample(b.Operator().Pid())
	time.Sleep(steadyTime)
	watched.stop()
	s.cpu, s.memory = watched.used(began.Add(sampleInterval), time.Now())
	s.serverCPU = b.ServerCPU() - server
	s.requests = len(b.requests(began, audit.Not(audit.Verbs("watch"))))
	return s
}

// requests are the operator's since a moment, without those of leader election and of its metrics.
func (b *Bench) requests(since time.Time, filter audit.Filter) []audit.Event {
	b.Helper()
	events, err := audit.Read(b.Ctx, b.Env.Cluster, audit.By(b.Operator().User()), audit.Budgeted(), audit.Since(since), filter)
	b.Must(err)
	return events
}

// Report prints it.
func (s Steady) Report(out io.Writer) {
	row := func(name, format string, figure any) Row { return Row{name, []string{fmt.Sprintf(format, figure)}} }
	Table(out, fmt.Sprintf("%d %s, steady state for %s", s.objects, s.what, steadyTime), []string{"operator"}, []Row{
		row("requests", "%d", s.requests),
		row("CPU of the operator, ms a second", "%.1f", float64(s.cpu.Milliseconds())/steadyTime.Seconds()),
		row("CPU of the API server, ms a second", "%.1f", float64(s.serverCPU.Milliseconds())/steadyTime.Seconds()),
		row("memory, MB", "%.1f", Megabytes(s.memory)),
	})
	Table(out, "after a restart", []string{"operator"}, []Row{
		row("until the caches are synced, s", "%.2f", s.synced.Seconds()),
		row("until all are reconciled, s", "%.2f", s.reconciled.Seconds()),
		row("writes", "%d", s.restartWrites),
		row("CPU of the operator, s", "%.2f", s.restartCPU.Seconds()),
		row("CPU of the API server, s", "%.2f", s.restartAPI.Seconds()),
		row("peak memory, MB", "%.1f", Megabytes(s.restartPeak)),
	})
}
