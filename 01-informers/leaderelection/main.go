// Command leaderelection shows a Lease that candidates hold in turn: the leader ends in order, ends without
// warning, or cannot renew any more; what has to have stopped before the next one leads; and what a leader
// that was held up can still do when it comes back, which the Lease does not prevent.
//
// The sources to read beside it, in k8s.io/client-go v0.37.2:
//
//   - tools/leaderelection/leaderelection.go: Run, tryAcquireOrRenew, renew, release. The package comment
//     says that it does not guarantee a single leader.
//   - tools/leaderelection/resourcelock/leaselock.go: how the record lies in a Lease.
//   - tools/leaderelection/resourcelock/interface.go: New; NewFromKubeconfig, and the time-out it sets.
//   - tools/leaderelection/healthzadaptor.go: a health check that fails when a leader outlives its lease.
//
// What it replaces: locks on Endpoints and ConfigMaps, which New refuses, and MultiLock (deprecated), which
// was for moving from one to the other.
package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name:  "leaderelection",
	Shows: "A Lease: held, released, waited out, lost; what must stop then, and what a fence is for.",
	Run:   run,
}

// leaseName is the Lease that the candidates hold in turn.
const leaseName = "lesson"

// brief are the times of this lesson. Kubernetes' own components, and controller-runtime, have 15 s, 10 s
// and 2 s. See times.check for what has to hold between them.
var brief = times{lease: 3 * time.Second, renew: 2 * time.Second, retry: 200 * time.Millisecond, request: 500 * time.Millisecond}

// session is one run of the lesson.
type session struct{ *lesson.World }

func run(ctx context.Context, world *lesson.World) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{world}
	if err := brief.check(); err != nil {
		return err
	}
	a, b, err := s.holdOne(ctx)
	if err != nil {
		return err
	}
	if err := s.handOver(ctx, a, b); err != nil {
		return err
	}
	c, err := s.waitOut(ctx, b)
	if err != nil {
		return err
	}
	d, err := s.lose(ctx, c)
	if err != nil {
		return err
	}
	defer d.end()
	return s.fence(ctx, c, d)
}

// candidate makes one and lets it stand for the Lease.
func (s *session) candidate(ctx context.Context, name string) (*candidate, error) {
	lock, err := newLock(s.Config, s.Namespace, name, brief)
	if err != nil {
		return nil, err
	}
	c, err := stand(ctx, lock, brief, true)
	if err != nil {
		return nil, fmt.Errorf("standing as %s: %w", name, err)
	}
	return c, nil
}

// lease reads the Lease.
func (s *session) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := s.Client.CoordinationV1().Leases(s.Namespace).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the Lease: %w", err)
	}
	return lease, nil
}

// tellLease prints who holds the Lease, and how often it has changed hands.
func (s *session) tellLease(ctx context.Context) error {
	lease, err := s.lease(ctx)
	if err != nil {
		return err
	}
	s.Printf("   the Lease: holder %s, transitions %d\n", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions)
	return nil
}

func (s *session) configMaps() corev1client.ConfigMapInterface {
	return s.Client.CoreV1().ConfigMaps(s.Namespace)
}

// state is what the leaders work on.
func state(writer string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "state"}, Data: map[string]string{"writer": writer}}
}
