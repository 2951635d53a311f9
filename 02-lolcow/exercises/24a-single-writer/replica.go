package singlewriter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/exercise/check"
)

// variable has the settings of a process that is a replica.
const variable = "EXERCISE_REPLICA"

// settings are what a replica gets.
type settings struct {
	Name, Host string
	Herd       client.ObjectKey
	Lease      time.Duration
}

// runReplica is the main function of a replica. It returns the exit status.
func runReplica(entry Entry, text string) int {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctrl.SetLogger(logr.Discard())
	work := &clock{name: s.Name, longest: s.Lease / 15, last: time.Now()}
	err := entry(context.Background(), &rest.Config{Host: s.Host, QPS: -1}, s.Herd, s.Lease, work.next)
	fmt.Fprintf(os.Stderr, "%s%v\n", lastLine, err)
	return 1
}

// lastLine is how the last line of a replica begins.
const lastLine = "Run returned "

// pause is between two entries.
const pause = 50 * time.Millisecond

// clock makes entries. Each has the name of the replica, a number, and for how many milliseconds the replica has run.
type clock struct {
	name string
	// longest is what the clock counts at most from one entry to the next: when the machine has no time for the process, that is not
	// the process's time. It is in proportion to the lease, as both are longer on a slow machine.
	longest time.Duration

	mu     sync.Mutex
	number int
	ran    time.Duration
	last   time.Time
}

// next waits for the next entry, and returns it.
func (c *clock) next(ctx context.Context) (string, error) {
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(pause):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.ran += min(now.Sub(c.last), c.longest)
	c.last = now
	c.number++
	return fmt.Sprintf("%s %d %d", c.name, c.number, c.ran.Milliseconds()), nil
}

// entry is what a replica has written.
type entry struct {
	name   string
	number int
	ran    time.Duration
}

// parse reads an entry. The text of none is the zero entry.
func parse(text string) entry {
	var e entry
	var milliseconds int64
	_, _ = fmt.Sscan(text, &e.name, &e.number, &milliseconds)
	e.ran = time.Duration(milliseconds) * time.Millisecond
	return e
}

// replica is a process, and the proxy by which it reaches the API server.
type replica struct {
	*proxy
	ended  <-chan struct{}
	output *bytes.Buffer
}

// startReplica starts this program once more.
func startReplica(b *check.B, name string, s settings) *replica {
	r := &replica{proxy: newProxy(b, name), output: &bytes.Buffer{}}
	s.Name, s.Host = name, r.address()
	text, err := json.Marshal(s)
	if err != nil {
		b.Fatalf("%v", err)
	}
	cmd := b.Again(variable + "=" + string(text))
	cmd.Stdout, cmd.Stderr = os.Stdout, io.MultiWriter(os.Stderr, r.output)
	if err := cmd.Start(); err != nil {
		b.Fatalf("starting a replica: %v", err)
	}
	b.Event("the process %s starts", name)
	r.ended = b.Go(func() {
		_ = cmd.Wait() // how it ends is in its output
		b.Event("the process %s has ended", name)
	})
	b.Cleanup(func() { <-r.ended })
	return r
}

// hasEnded says whether the process has ended.
func (r *replica) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// why is what the process said at its end.
func (r *replica) why() string {
	lines := strings.Split(strings.TrimSpace(r.output.String()), "\n")
	return lines[len(lines)-1]
}
