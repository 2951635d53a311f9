package singlewriter

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// A lease is for shortest on a machine that has little else to do, and at most for stretch times that: less than the RenewDeadline
// that is the default.
const (
	shortest = 3 * time.Second
	stretch  = 3
)

// scene is a namespace with the ConfigMap that replicas write.
type scene struct {
	b      *check.B
	client kubernetes.Interface
	settings
}

func newScene(b *check.B) *scene {
	s := &scene{b: b, client: kube.Client(b), settings: settings{
		Herd: client.ObjectKey{Namespace: kube.Namespace(b), Name: "herd"}, Lease: leaseDuration(b),
	}}
	// The runner deletes what is in the namespace, but no leases: the API server has some of its own.
	b.Cleanup(func() {
		_ = s.client.CoordinationV1().Leases(s.Herd.Namespace).
			DeleteCollection(context.WithoutCancel(b.Context()), metav1.DeleteOptions{}, metav1.ListOptions{})
	})
	herd := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: s.Herd.Name}}
	if _, err := s.client.CoreV1().ConfigMaps(s.Herd.Namespace).Create(b.Context(), herd, metav1.CreateOptions{}); err != nil {
		b.Fatalf("creating a ConfigMap: %v", err)
	}
	return s
}

// leaseDuration is longer where all takes longer: a leader that gets no time to renew its lease loses it, as it should. A Lease has
// whole seconds.
func leaseDuration(b *check.B) time.Duration {
	return time.Duration(math.Ceil(min(b.Patience(shortest), stretch*shortest).Seconds())) * time.Second
}

func (s *scene) start(name string) *replica { return startReplica(s.b, name, s.settings) }

// last returns the entry that is in the ConfigMap now.
func (s *scene) last() entry {
	herd, err := s.client.CoreV1().ConfigMaps(s.Herd.Namespace).Get(s.b.Context(), s.Herd.Name, metav1.GetOptions{})
	if err != nil {
		s.b.Fatalf("reading the ConfigMap: %v", err)
	}
	return parse(herd.Data["last"])
}

// eventually waits for something that a replica does which runs.
func (s *scene) eventually(r *replica, condition func() string) {
	s.b.Eventually(patience, func() string {
		ended := r.hasEnded()
		if r.state().early {
			s.b.Fatalf("a replica has written an entry, and has never had the lease")
		}
		if ended {
			s.b.Fatalf("the process %s has ended: %s", r.name, r.why())
		}
		text := condition()
		if text != "" {
			time.Sleep(pause)
		}
		return text
	})
}

// works waits until a replica has written some entries.
func (s *scene) works(r *replica) {
	from := 0
	s.eventually(r, func() string {
		last := s.last()
		if last.name != r.name {
			return fmt.Sprintf("the process %s writes nothing", r.name)
		}
		if from == 0 {
			from = last.number
		}
		if last.number < from+some {
			return fmt.Sprintf("the process %s does not go on to write", r.name)
		}
		return ""
	})
	s.b.Event("%s writes", r.name)
}

// waits returns when a replica has asked for the lease, and does not get it.
func (s *scene) waits(r *replica, asked int) {
	s.eventually(r, func() string {
		if r.state().asked < asked {
			return fmt.Sprintf("the process %s does not ask for the lease again and again", r.name)
		}
		return ""
	})
	s.b.Event("%s has asked for the lease", r.name)
}

// loseLease lets no request of the leader for its lease through, once it has renewed that, and waits for its end.
func (s *scene) loseLease(leader *replica) {
	leader.set(func(p *proxy) { p.loseNext = true })
	s.eventually(leader, func() string {
		if !leader.state().lost {
			return "the leader does not renew its lease"
		}
		return ""
	})
	renewed, first := s.last(), entry{}
	s.b.Eventually(patience+2*shortest, func() string {
		ended := leader.hasEnded()
		switch last := s.last(); {
		case last.number == renewed.number:
		case first.number == 0:
			first = last
		case last.ran-first.ran >= s.Lease*9/10:
			s.b.Fatalf("nine tenths of the lease have passed since the leader has renewed it, and it still writes")
		}
		if !ended {
			time.Sleep(pause)
			return "the leader has lost its lease, and its process does not end"
		}
		return ""
	})
}

// hold lets the next write of a replica get lost on its way, for now, and all its requests for the lease.
func (s *scene) hold(r *replica) {
	r.set(func(p *proxy) { p.hold = true })
	s.eventually(r, func() string {
		if !r.state().caught {
			return fmt.Sprintf("the process %s does not write", r.name)
		}
		return ""
	})
}

// deliver delivers the write that was held.
func (s *scene) deliver(r *replica) {
	code, err := r.deliver()
	if err != nil {
		s.b.Fatalf("delivering a write: %v", err)
	}
	s.b.Event("the write of %s arrives: %d %s", r.name, code, http.StatusText(code))
	if code < http.StatusBadRequest {
		s.b.Fatalf("a write of the old leader has arrived when another one had written, and it took effect")
	}
}
