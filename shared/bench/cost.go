package bench

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"example.com/workbook/shared/audit"
)

// Cost is what some work cost.
type Cost struct {
	// Requests are the writer's, in the order in which they arrived.
	Requests []audit.Event
	// WriterCPU and ServerCPU are the CPU time of the process that writes, and of the API server. That of the writer
	// begins with its first request. Both end when all controllers are done, but for a writer that is this process:
	// its ends with its work.
	WriterCPU, ServerCPU time.Duration
	// Peak is the most memory that the process had; 0 for this one, which does more than to write.
	Peak uint64
}

// sample is what a process has used until some moment.
type sample struct {
	at     time.Time
	cpu    time.Duration
	memory uint64
}

// sampler looks at a process at intervals.
type sampler struct {
	mu      sync.Mutex
	samples []sample
	stop    func()
}

// sampleInterval is how often a process is looked at.
const sampleInterval = 50 * time.Millisecond

func (b *Bench) sample(pid int) *sampler {
	b.Helper()
	watched, err := process.NewProcessWithContext(b.Ctx, int32(pid))
	b.Must(err)
	ctx, cancel := context.WithCancel(b.Ctx)
	s := &sampler{}
	s.take(ctx, watched)
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(sampleInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.take(ctx, watched)
			}
		}
	})
	s.stop = func() {
		s.take(b.Ctx, watched)
		cancel()
		running.Wait()
	}
	return s
}

func (s *sampler) take(ctx context.Context, watched *process.Process) {
	times, timesErr := watched.TimesWithContext(ctx)
	memory, memoryErr := watched.MemoryInfoWithContext(ctx)
	if timesErr != nil || memoryErr != nil {
		return // it has ended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, sample{time.Now(), time.Duration((times.User + times.System) * float64(time.Second)), memory.RSS})
}

// used is the CPU time between two moments, and the peak of the memory.
func (s *sampler) used(since, until time.Time) (cpu time.Duration, peak uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.samples) == 0 {
		return 0, 0 // it ended at once
	}
	before, after := s.samples[0], s.samples[0]
	for _, one := range s.samples {
		if one.at.Before(since) {
			before = one
		}
		if !one.at.After(until) {
			after = one
		}
		peak = max(peak, one.memory)
	}
	return after.cpu - before.cpu, peak
}

// Measure starts a writer, which acts as user in a namespace, waits until it is done, and returns what that cost.
func (b *Bench) Measure(user, namespace string, start func() Running, done func()) Cost {
	b.Helper()
	server := b.ServerCPU()
	running := start()
	watched := b.sample(running.Pid)
	running.Work()
	worked := time.Now()
	done()
	b.WaitQuiet()
	watched.stop()
	running.Stop()
	cost := Cost{ServerCPU: b.ServerCPU() - server}
	var err error
	cost.Requests, err = audit.Read(b.Ctx, b.Env.Cluster, audit.By(user), audit.InNamespace(namespace))
	b.Must(err)
	if running.Pid == Here() {
		cost.WriterCPU, _ = watched.used(First(cost.Requests), worked)
	} else {
		cost.WriterCPU, cost.Peak = watched.used(First(cost.Requests), time.Now())
	}
	return cost
}

// Here is the pid of a writer that is this process.
func Here() int { return os.Getpid() }

// First is when the first of some requests arrived.
func First(requests []audit.Event) (first time.Time) {
	for i := range requests {
		if at := requests[i].RequestReceivedTimestamp.Time; first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// Finished is when each object had got its first response to a request that counts, and so had been taken care of: the
// last of these moments. The request that creates an object has no name.
func Finished(requests []audit.Event, counts func(*audit.Event) bool) (last time.Time) {
	seen := map[string]bool{}
	for i := range requests {
		e := &requests[i]
		if e.ResponseStatus == nil || e.ResponseStatus.Code >= 300 || !counts(e) || seen[e.ObjectRef.Name] {
			continue
		}
		seen[e.ObjectRef.Name] = e.ObjectRef.Name != ""
		if e.StageTimestamp.After(last) {
			last = e.StageTimestamp.Time
		}
	}
	return last
}
