// Package nonce is exercise 19a: one call of a service that has an effect, with a nonce.
package nonce

import (
	"context"
	"errors"
	"os"

	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/03-flux/exercises/internal/cloud"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, client typedcorev1.ConfigMapInterface, provider cloud.Provider, name string) error

var errTimeout = errors.New("the cloud provider does not respond: timeout")

// Check reconciles ConfigMaps, with a provider of its own for each behaviour.
func Check(t *check.T, work check.Work[Entry]) {
	if os.Getenv(variable) != "" {
		launchAndDie(work.Entry)
	}
	ok := t.Behaviour("a machine is launched, and its ID is in data.machine", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.settle("web")
		s.expect("web", 1)
	})
	if !ok {
		return
	}
	t.Behaviour("each ConfigMap gets a machine of its own", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.settle("web")
		s.create("db")
		s.settle("db")
		s.expect("db", 2)
	})
	checkCrashes(t, work.Entry)
	checkReads(t, work.Entry)
	checkUsers(t, work.Entry)
}

// checkCrashes lets launches fail, and the controller crash.
func checkCrashes(t *check.T, entry Entry) {
	t.Behaviour("a launch that fails is repeated, and launches no second machine", func(b *check.B) {
		for _, effect := range []bool{false, true} {
			s := newScene(b, entry)
			s.inCall = func() (bool, error) { return effect, errTimeout }
			s.settle("web")
			s.expect("web", 1)
		}
	})
	t.Behaviour("it launches one machine, also if it crashes during the launch", func(b *check.B) {
		for _, effect := range []bool{false, true} {
			s := newScene(b, entry)
			s.inCall = func() (bool, error) {
				s.process.Crash()
				return effect, context.Canceled
			}
			s.settle("web")
			s.expect("web", 1)
		}
	})
	t.Behaviour("after a crash nothing is left in memory, and it launches one machine", func(b *check.B) {
		s := newScene(b, entry)
		s.launchedByAnother()
		s.settle("web")
		s.expect("web", 1)
	})
	t.Behaviour("it launches one machine, at whichever write it crashes", func(b *check.B) {
		for _, after := range []bool{false, true} {
			for number := 1; ; number++ {
				s := newScene(b, entry)
				s.process.CrashAt(number, after)
				s.settle("web")
				s.expect("web", 1)
				if !s.process.Crashed() {
					break
				}
			}
		}
	})
}

// checkReads lets it read old objects, and lets another replica be faster.
func checkReads(t *check.T, entry Entry) {
	t.Behaviour("old objects that it reads do no harm", func(b *check.B) {
		s := newScene(b, entry)
		before := s.all()
		var during map[string]corev1.ConfigMap
		s.inCall = func() (bool, error) {
			during = s.all()
			return true, nil
		}
		s.settle("web")
		for _, old := range []map[string]corev1.ConfigMap{before, during} {
			s.readOld(old)
			_ = s.call("web")
			_ = s.call("web")
			s.readOld(nil)
			s.settle("web")
			s.expect("web", 1)
		}
	})
	t.Behaviour("a read that fails is no reason to launch, or to be content", func(b *check.B) {
		for _, later := range []bool{false, true} {
			for number := 1; ; number++ {
				s := newScene(b, entry)
				if later {
					s.settle("web")
					s.forget()
				}
				var err error
				failed := s.wire.FailRead(number, func() { err = s.call("web") })
				if err == nil && s.get("web").Data[machineKey] == "" {
					b.Fatalf("a read has failed, data.machine is not set, and Reconcile returned no error: it is not called again")
				}
				s.settle("web")
				s.expect("web", 1)
				if !failed {
					break
				}
			}
		}
	})
	t.Behaviour("two replicas launch one machine", func(b *check.B) {
		s := newScene(b, entry)
		s.otherReplicaBeforeTheFirstWrite("web")
		s.settle("web")
		s.expect("web", 1)
	})
}

// checkUsers lets users replace, and delete, the ConfigMap.
func checkUsers(t *check.T, entry Entry) {
	t.Behaviour("a user who replaces the ConfigMap during the launch gets no second machine", func(b *check.B) {
		s := newScene(b, entry)
		s.inCall = func() (bool, error) {
			s.replace("web")
			s.process.Crash()
			return true, context.Canceled
		}
		s.settle("web")
		s.expect("web", 1)
	})
	t.Behaviour("a user who replaces the ConfigMap later gets no second machine", func(b *check.B) {
		s := newScene(b, entry)
		s.settle("web")
		s.forget()
		s.replace("web")
		s.wire.Fail(1, kube.Writes)
		s.settle("web")
		s.expect("web", 1)
		s.oldMachine = "machine-0"
		s.replace("web")
		s.settle("web")
		s.expect("web", 1)
	})
	t.Behaviour("what a user writes during the launch stays", func(b *check.B) {
		s := newScene(b, entry)
		s.inCall = func() (bool, error) {
			s.resize("web")
			return true, nil
		}
		s.settle("web")
		s.expect("web", 1)
	})
	t.Behaviour("a ConfigMap that is deleted, and created again, during the launch gets a machine of its own", func(b *check.B) {
		s := newScene(b, entry)
		s.inCall = func() (bool, error) {
			s.delete("web")
			s.create("web")
			return true, nil
		}
		_ = s.call("web")
		s.expectNotTheFirst("web")
		s.settle("web")
		s.expect("web", 2)
	})
	t.Behaviour("a new ConfigMap of the same name gets a machine of its own", func(b *check.B) {
		s := newScene(b, entry)
		s.recreate("web", s.collect)
	})
	t.Behaviour("it gets one also if the garbage collector is late", func(b *check.B) {
		s := newScene(b, entry)
		s.recreate("web", func() bool { return false })
	})
}
