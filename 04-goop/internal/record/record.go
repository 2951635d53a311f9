// Package record stores what must be known about a Goop's work: when it was started, on which nodes it has begun, which
// workers have finished and how, and the output of the first failures. It uses no Kubernetes client: it reads and writes
// the texts of ConfigMaps, which are called shards.
//
// A shard is a text that only grows. When it is full, the next shard is created. Each line is one entry, with one space
// between its fields:
//
//	s 2026-01-02T15:04:05Z    the work was started or resumed; the last such line counts
//	s -                       the work was suspended or has ended
//	b NODE                    work has begun on a node
//	f NODE ROUND EXIT TRIES   a worker has finished, with the exit code of its last try; the first line for a worker counts
//	c NODE EXIT TRIES         the cleanup has ended on a node, with the exit code of its last try; the first line for a node counts
//	f NODE ROUND EXIT TRIES "OUTPUT"    the same, with the end of its output, quoted as in Go
package record

import (
	"strconv"
	"time"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

const (
	// Key is the key of a shard's text in the data of its ConfigMap.
	Key = "record"

	// ShardSize is how many bytes a shard can hold. A ConfigMap could hold four times as many, but the whole shard is
	// written again with each entry.
	ShardSize = 256 << 10

	// MaxShards is the number of shards whose uids a status has room for.
	MaxShards = 256
)

// Record is the content of the shards. It is created by Read, and changed only by its methods.
type Record struct {
	// Started is when the work was started or resumed, to the second; zero if it was not, or if it is suspended.
	Started time.Time

	// Begun has all nodes where work has begun, added by Begin, Finish or Clean.
	Begun map[string]bool

	// Cleaned has the exit code of the cleanup for each node where it has ended.
	Cleaned map[string]int32

	// Finished has the places of all workers that have finished.
	Finished map[plan.Place]bool

	// Succeeded and Failed are how many of Finished have ended with 0, and with another exit code.
	Succeeded, Failed int32

	// ExitCode is the highest of Finished, 0 if there is none.
	ExitCode int32

	// Failures are the first MaxFailures failed workers in the order in which they were recorded, with the end of their
	// output.
	Failures []v1alpha1.Failure

	shards  [][]byte
	changed int
	// closed is set if no line may be added to the last shard.
	closed bool
}

// Shard is the text of one ConfigMap.
type Shard struct {
	// Number of the shard, from 0.
	Number int
	// Text is the whole text of the shard.
	Text string
}

// Finish is how a worker has ended.
type Finish struct {
	Place plan.Place
	// ExitCode of the last of Tries.
	ExitCode, Tries int32
	// Output is the end of the output. It is kept for the first failures only, and shortened by Clip.
	Output string
}

// Start records when the work was started or resumed.
func (r *Record) Start(at time.Time) {
	at = at.UTC().Truncate(time.Second)
	if !r.Started.Equal(at) {
		r.append(state(at))
		r.Started = at
	}
}

// Suspend records that the work is suspended or has ended. It clears the start time.
func (r *Record) Suspend() {
	if !r.Started.IsZero() {
		r.append(state(time.Time{}))
		r.Started = time.Time{}
	}
}

// State is a text for a new shard: it repeats whether the work is started. So a shard without a text has lost it.
func (r *Record) State() string { return state(r.Started) + "\n" }

func state(started time.Time) string {
	if started.IsZero() {
		return startLetter + " " + notStarted
	}
	return startLetter + " " + started.Format(time.RFC3339)
}

// Begin records that work has begun on a node. It does nothing if that is already recorded.
func (r *Record) Begin(node string) {
	if !r.Begun[node] {
		r.append(beginLetter + " " + node)
		r.Begun[node] = true
	}
}

// Finish records that a worker has finished. It does nothing if that is already recorded: the first result counts.
func (r *Record) Finish(f Finish) {
	if r.Finished[f.Place] {
		return
	}
	line := finishLetter + " " + f.Place.Node + " " + strconv.Itoa(f.Place.Round) + " " +
		strconv.Itoa(int(f.ExitCode)) + " " + strconv.Itoa(int(f.Tries))
	if r.keepsOutput(f) {
		if f.Output = Clip(f.Output); f.Output != "" {
			line += " " + strconv.Quote(f.Output)
		}
	}
	r.append(line)
	r.count(f)
}

// Clean records that the cleanup has ended on a node, with the exit code of its last try. It does nothing if that is
// already recorded: the first result counts.
func (r *Record) Clean(node string, exitCode, tries int32) {
	if _, cleaned := r.Cleaned[node]; !cleaned {
		r.append(cleanLetter + " " + node + " " + strconv.Itoa(int(exitCode)) + " " + strconv.Itoa(int(tries)))
		r.Cleaned[node], r.Begun[node] = exitCode, true
	}
}

// Changed returns the shards that have changed since Read, by number. They are to be updated, or created if they are new.
// If they are written in this order, the record can be read after each write.
func (r *Record) Changed() []Shard {
	var changed []Shard
	for number := r.changed; number < len(r.shards); number++ {
		changed = append(changed, Shard{Number: number, Text: string(r.shards[number])})
	}
	return changed
}

// append adds a line to the last shard, or to a new one if that is full.
func (r *Record) append(line string) {
	last := len(r.shards) - 1
	if last < 0 || r.closed || len(r.shards[last])+len(line)+1 > ShardSize {
		r.closed = false
		r.shards = append(r.shards, nil)
		last++
	}
	r.shards[last] = append(append(r.shards[last], line...), '\n')
	r.changed = min(r.changed, last)
}

// keepsOutput reports whether f is one of the failures whose output is kept.
func (r *Record) keepsOutput(f Finish) bool {
	return f.ExitCode != 0 && len(r.Failures) < v1alpha1.MaxFailures
}

// count updates the counts for a worker that has finished.
func (r *Record) count(f Finish) {
	if r.keepsOutput(f) {
		r.Failures = append(r.Failures, v1alpha1.Failure{
			Node: f.Place.Node, Round: int32(f.Place.Round), ExitCode: f.ExitCode, Output: Clip(f.Output),
		})
	}
	r.Finished[f.Place] = true
	r.Begun[f.Place.Node] = true
	r.ExitCode = max(r.ExitCode, f.ExitCode)
	if f.ExitCode == 0 {
		r.Succeeded++
	} else {
		r.Failed++
	}
}
