// Package record keeps what must be remembered of a Goop's work: when it was started, on which nodes it has begun,
// which workers have finished and how, and what the first failures wrote. It knows no Kubernetes client: it reads
// and makes the texts of ConfigMaps, which are called shards.
//
// A shard is text that only grows, until it is full and the next is begun. It has one line for each entry, and its
// fields have one space between them:
//
//	s 2026-01-02T15:04:05Z    the work was started, or resumed; of several the last counts
//	s -                       it was suspended
//	b NODE                    work has begun on a node
//	f NODE ROUND EXIT TRIES   a worker has finished, with the exit code of its last try; of several the first counts
//	c NODE EXIT TRIES         the cleanup has ended on a node, with the exit code of its last try; of several the first counts
//	f NODE ROUND EXIT TRIES "OUTPUT"    the same, with the end of its output, quoted as in Go
package record

import (
	"strconv"
	"time"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

const (
	// Key is that of a shard's text in the data of its ConfigMap.
	Key = "record"

	// ShardSize is how many bytes a shard can hold. A ConfigMap could hold four times as many, but all of it is
	// written again with each entry that is added.
	ShardSize = 256 << 10
)

// Record is what the shards say. It is made by Read, and only its methods may change it.
type Record struct {
	// Started is when the work was started, or resumed, to the second; zero if it was not, or is suspended.
	Started time.Time

	// Begun has true for each node where work has begun, by Begin, Finish or Clean.
	Begun map[string]bool

	// Cleaned has the exit code of the cleanup for each node where it has ended.
	Cleaned map[string]int32

	// Finished has true for the place of each worker that has finished.
	Finished map[plan.Place]bool

	// Succeeded and Failed are how many of Finished have ended with 0, and with anything else.
	Succeeded, Failed int32

	// ExitCode is the highest of Finished, 0 if there is none.
	ExitCode int32

	// Failures are the first MaxFailures of Failed in the order in which they were recorded, with an output.
	Failures []v1alpha1.Failure

	shards  [][]byte
	changed int
	// closed is set if no line is added to the last shard.
	closed bool
}

// Shard is the text of one ConfigMap.
type Shard struct {
	// Number of the shard, from 0.
	Number int
	// Text is all of it, what was there before included.
	Text string
}

// Finish is how a worker has ended.
type Finish struct {
	Place plan.Place
	// ExitCode of the last of Tries.
	ExitCode, Tries int32
	// Output is the end of what it wrote. It is kept for the first failures only, clipped by Clip.
	Output string
}

// Start notes when the work was started, or resumed.
func (r *Record) Start(at time.Time) {
	at = at.UTC().Truncate(time.Second)
	if !r.Started.Equal(at) {
		r.append(startLetter + " " + at.Format(time.RFC3339))
		r.Started = at
	}
}

// Suspend notes that the work is suspended: there is no time that it was started at.
func (r *Record) Suspend() {
	if !r.Started.IsZero() {
		r.append(startLetter + " " + notStarted)
		r.Started = time.Time{}
	}
}

// Begin notes that work has begun on a node. It does nothing if that is recorded.
func (r *Record) Begin(node string) {
	if !r.Begun[node] {
		r.append(beginLetter + " " + node)
		r.Begun[node] = true
	}
}

// Finish notes that a worker has finished. It does nothing if that is recorded: what was first counts.
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

// Clean notes that the cleanup has ended on a node, with the exit code of the last of its tries. It does nothing if that
// is recorded: what was first counts.
func (r *Record) Clean(node string, exitCode, tries int32) {
	if _, cleaned := r.Cleaned[node]; !cleaned {
		r.append(cleanLetter + " " + node + " " + strconv.Itoa(int(exitCode)) + " " + strconv.Itoa(int(tries)))
		r.Cleaned[node], r.Begun[node] = exitCode, true
	}
}

// Changed returns the shards that are not as Read was given them, by their number: those that are to be updated, or
// created if they are new. Written in this order, each leaves a record that can be read.
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

// keepsOutput tells whether f is among the failures whose output is kept.
func (r *Record) keepsOutput(f Finish) bool {
	return f.ExitCode != 0 && len(r.Failures) < v1alpha1.MaxFailures
}

// count adds a worker to what is known of those that have finished.
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
