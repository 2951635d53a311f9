// Command leaderelection shows a Lease that candidates hold in turn. A leader stops in order, and another one cannot
// renew the Lease. The lesson shows what has to stop before the next candidate leads, and a late write of a former
// leader, which the Lease does not prevent.
//
// Source, k8s.io/client-go v0.37.2:
//
//   - tools/leaderelection/leaderelection.go: Run, tryAcquireOrRenew, renew, release. The package comment
//     says that it does not guarantee a single leader.
//   - tools/leaderelection/resourcelock/leaselock.go: how a Lease contains the record.
//   - tools/leaderelection/resourcelock/interface.go: New; NewFromKubeconfig, and the timeout that it sets.
//   - tools/leaderelection/healthzadaptor.go: a health check that fails when a leader does not stop after its
//     lease has expired.
//
// What it replaces: locks on Endpoints and ConfigMaps, for which New returns an error, and MultiLock
// (deprecated), which was for the migration from one to the other.
package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name:  "leaderelection",
	Shows: "A Lease: held, released, lost; what has to stop then, and how to reject a late write.",
	Run:   run,
}

// leaseName is the name of the Lease.
const leaseName = "lesson"

// brief are the durations of this lesson. Kubernetes components and controller-runtime have 15 s, 10 s and 2 s.
// durations.check says how they depend on each other.
var brief = durations{lease: 4 * time.Second, renew: 2 * time.Second, retry: 200 * time.Millisecond, request: 500 * time.Millisecond}

// session is one run of the lesson, with its candidates.
type session struct {
	*lesson.Env
	a, b, c *candidate
}

func run(ctx context.Context, env *lesson.Env) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lesson.Check(brief.check())
	s := &session{Env: env}
	defer func() {
		if s.c != nil {
			s.c.stop()
		}
	}()
	s.elect(ctx)
	s.release(ctx)
	s.lose(ctx)
	s.writeLate(ctx)
}

// candidate starts a candidate. If another one leads, it waits until the new one has read that.
func (s *session) candidate(ctx context.Context, name, leader string) *candidate {
	c := start(ctx, newLock(s.Config, s.Namespace, name, brief), brief)
	if leader == "" {
		c.awaitLeading(ctx)
	} else {
		lesson.Until(ctx, name+" has read that "+leader+" leads", func() bool { return c.elector.GetLeader() == leader })
	}
	return c
}

// printLease prints the holder and the number of transitions.
func (s *session) printLease(ctx context.Context) {
	lease := lesson.Must(s.Client.CoordinationV1().Leases(s.Namespace).Get(ctx, leaseName, metav1.GetOptions{}))
	s.Printf("   the Lease: holder %s, transitions %d\n", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions)
}
