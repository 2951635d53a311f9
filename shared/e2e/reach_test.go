package e2e

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"example.com/workbook/shared/cluster"
)

// running is a cluster of which only one thing is asked.
type running struct{ cluster.Cluster }

func (running) RunsContainers() bool { return true }

// TestNoAnswerIsNotWaitedForLong: what polls with NodeGet gets its next turn though one connection
// hangs, as one does that a node has sent to a pod which is no longer there.
func TestNoAnswerIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	env := &Env{Cluster: running{}}
	_, _, err = env.NodeGet(ctx, "http://"+silent.Addr().String(), nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v, want one that says that the time limit has expired", err)
	}
	if ctx.Err() != nil {
		t.Error("the request lasted as long as its caller let it")
	}
}
