package controller

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

const settleTimeout = 30 * time.Second

// operator is the whole controller with its watches and cache, under a user of its own.
type operator struct {
	user   string
	config *rest.Config
	// idle counts the reconciliations that found nothing to change, by what the log says of them.
	idle atomic.Int32
}

func newOperator(t *testing.T, f *testEnv) *operator {
	t.Helper()
	o := &operator{user: "operator-of-" + f.namespace}
	user, err := apiServer(t).env.AddUser(envtest.User{Name: o.user, Groups: []string{"system:masters"}}, nil)
	f.Expect(err).NotTo(HaveOccurred())
	o.config = user.Config()
	o.config.QPS = -1
	return o
}

// start runs the manager as cmd/main.go does, for one namespace, until stop is called.
func (o *operator) start(t *testing.T, f *testEnv) (stop func()) {
	t.Helper()
	cacheOptions := CacheOptions()
	cacheOptions.DefaultNamespaces = map[string]cache.Config{f.namespace: {}}
	mgr, err := ctrl.NewManager(o.config, ctrl.Options{
		Scheme:     scheme,
		Cache:      cacheOptions,
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Logger:     o.logger(t),
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	f.Expect(err).NotTo(HaveOccurred())
	reconciler := NewLolcowReconciler(mgr.GetClient(), mgr.GetEventRecorder("lolcow-controller"), clock.RealClock{}, serverImage)
	f.Expect(reconciler.SetupWithManager(f.ctx, mgr, controller.Options{MaxConcurrentReconciles: 4})).To(Succeed())
	return runManager(f.ctx, t, mgr)
}

// runManager runs a manager until stop is called, or the test ends. It has to end without an error.
func runManager(ctx context.Context, t *testing.T, mgr ctrl.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// logger is the test's log, at verbosity 1. It stops at the test's end, which the manager's last lines
// may come after.
func (o *operator) logger(t *testing.T) logr.Logger {
	t.Helper()
	return funcr.New(func(_, line string) {
		if strings.Contains(line, "Nothing to change") {
			o.idle.Add(1)
		} else if t.Context().Err() == nil {
			t.Log(line)
		}
	}, funcr.Options{Verbosity: 1})
}

// writes counts, by object, what the operator has written, from the API server's own audit log.
func (o *operator) writes(t *testing.T, f *testEnv) map[string]int {
	t.Helper()
	log, err := os.Open(apiServer(t).auditLog)
	f.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = log.Close() }()
	counts := map[string]int{}
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return counts
		}
		f.Expect(err).NotTo(HaveOccurred())
		var event struct {
			Verb string
			User struct{ Username string }
			// Events are counted together: the server names them, not we.
			ObjectRef struct{ Resource, Subresource, Name string }
		}
		f.Expect(json.Unmarshal(line, &event)).To(Succeed())
		if event.User.Username != o.user {
			continue
		}
		counts[fmt.Sprintf("%s %s/%s %s", event.Verb, event.ObjectRef.Resource, event.ObjectRef.Subresource, event.ObjectRef.Name)]++
	}
}

func total(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

func (f *testEnv) expectSoon(name, reason string) {
	f.Eventually(func(g Gomega) {
		g.Expect(readyOf(f.get(name)).Reason).To(Equal(reason))
	}).WithTimeout(settleTimeout).Should(Succeed())
}

// Per Lolcow, from its creation until it is Ready: two dependents, two status writes, one Event. Then, in
// steady state, nothing for a minute; and nothing after a restart.
func TestWriteBudget(t *testing.T) {
	t.Parallel()
	const herd = 50
	f := newTestEnv(t)
	o := newOperator(t, f)
	stop := o.start(t, f)

	for i := range herd {
		name := fmt.Sprintf("cow-%02d", i)
		f.Expect(f.client.Create(f.ctx, f.lolcow(name, v1alpha1.LolcowSpec{Greeting: "Moo"}))).To(Succeed())
		f.expectSoon(name, v1alpha1.ReasonRollingOut)
		f.rollOut(name)
		f.expectSoon(name, v1alpha1.ReasonServing)
	}
	f.Eventually(func() int { return total(o.writes(t, f)) }).WithTimeout(settleTimeout).Should(Equal(5*herd),
		"five writes for each Lolcow")
	t.Logf("create to Ready: %.2f writes for each of %d Lolcows", float64(total(o.writes(t, f)))/herd, herd)
	settled := o.writes(t, f)

	f.Consistently(func() map[string]int { return o.writes(t, f) }).
		WithTimeout(time.Minute).WithPolling(5*time.Second).Should(Equal(settled), "nothing is written in steady state")

	stop()
	o.idle.Store(0)
	o.start(t, f)
	f.Eventually(o.idle.Load).WithTimeout(settleTimeout).Should(BeNumerically(">=", herd), "the log says so for each")
	// A change to one Lolcow, handled, shows that the operator is up and has been through its queue.
	lolcow := f.get("cow-00")
	lolcow.Spec.Greeting = "Baa"
	f.Expect(f.client.Update(f.ctx, lolcow)).To(Succeed())
	f.expectSoon("cow-00", v1alpha1.ReasonRollingOut)
	// A status can be read a moment before the audit log has its write.
	f.Eventually(func() int { return total(o.writes(t, f)) }).WithTimeout(settleTimeout).Should(BeNumerically(">=", total(settled)+2))
	f.Consistently(func() int { return total(o.writes(t, f)) }).
		WithTimeout(5*time.Second).Should(Equal(total(settled)+2), "after a restart only what was asked for: a Deployment and a status")
}

// A port that another Service gives up, by its deletion or by a change, is taken within ten seconds.
func TestFreedPortIsTaken(t *testing.T) {
	t.Parallel()
	for _, port := range []int32{30030, 30031} {
		t.Run(fmt.Sprint(port), func(t *testing.T) {
			t.Parallel()
			f := newTestEnv(t)
			squatter := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: "squatter", Namespace: f.namespace},
				Spec: corev1.ServiceSpec{
					Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}},
				},
			}
			f.Expect(f.client.Create(f.ctx, squatter)).To(Succeed())
			newOperator(t, f).start(t, f)
			f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{Port: new(port)}))).To(Succeed())
			f.expectSoon("cow", v1alpha1.ReasonPortConflict)

			freed := time.Now()
			if port%2 == 0 {
				f.Expect(f.client.Delete(f.ctx, squatter)).To(Succeed())
			} else {
				squatter.Spec.Ports[0].NodePort = port + 2
				f.Expect(f.client.Update(f.ctx, squatter)).To(Succeed())
			}
			f.Eventually(func() int32 { return f.get("cow").Status.Port }).
				WithTimeout(10 * time.Second).WithPolling(10 * time.Millisecond).Should(Equal(port))
			t.Logf("taken %s after it was freed", time.Since(freed).Round(time.Millisecond))
		})
	}
}

func TestFreedNameTriggersAReconciliation(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	other := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: f.namespace},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	f.Expect(f.client.Create(f.ctx, other)).To(Succeed())
	newOperator(t, f).start(t, f)
	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{}))).To(Succeed())
	f.expectSoon("cow", v1alpha1.ReasonNameConflict)
	f.Expect(f.client.Delete(f.ctx, other)).To(Succeed())
	f.expectSoon("cow", v1alpha1.ReasonRollingOut)
}

// outage is a way to the API server that can be cut.
type outage struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	cut      bool
	open     []net.Conn
}

func newOutage(f *testEnv, target string) *outage {
	listener, err := new(net.ListenConfig).Listen(f.ctx, "tcp", "127.0.0.1:0")
	f.Expect(err).NotTo(HaveOccurred())
	o := &outage{listener: listener, target: target}
	go o.serve(f.ctx)
	return o
}

func (o *outage) serve(ctx context.Context) {
	for {
		near, err := o.listener.Accept()
		if err != nil {
			return
		}
		o.mu.Lock()
		if o.cut {
			_ = near.Close()
		} else if far, err := new(net.Dialer).DialContext(ctx, "tcp", o.target); err != nil {
			_ = near.Close()
		} else {
			o.open = append(o.open, near, far)
			go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
		}
		o.mu.Unlock()
	}
}

func (o *outage) set(cut bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cut = cut
	for _, conn := range o.open {
		_ = conn.Close()
	}
	o.open = nil
}

// The API server cannot be reached for 30 seconds, while specs and dependents change. Then all converges,
// in the same process, without a duplicate and without a lost update.
func TestConvergesAfterTheServerWasGoneFor30Seconds(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	o := newOperator(t, f)
	address, err := url.Parse(o.config.Host)
	f.Expect(err).NotTo(HaveOccurred())
	if address.Host == "" {
		address.Host = o.config.Host
	}
	way := newOutage(f, address.Host)
	t.Cleanup(func() { _ = way.listener.Close() })
	o.config.Host = "https://" + way.listener.Addr().String()
	o.config.ServerName = "localhost"
	o.start(t, f)
	f.Expect(f.client.Create(f.ctx, f.lolcow("cow", v1alpha1.LolcowSpec{Greeting: "Moo"}))).To(Succeed())
	f.expectSoon("cow", v1alpha1.ReasonRollingOut)
	f.rollOut("cow")
	f.expectSoon("cow", v1alpha1.ReasonServing)

	way.set(true)
	lolcow := f.get("cow")
	lolcow.Spec.Greeting, lolcow.Spec.Replicas = "Baa", new(int32(2))
	f.Expect(f.client.Update(f.ctx, lolcow)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, f.service())).To(Succeed())
	f.Expect(f.client.Create(f.ctx, f.lolcow("calf", v1alpha1.LolcowSpec{Greeting: "Mee"}))).To(Succeed())
	f.Consistently(func() int64 { return f.get("cow").Status.ObservedGeneration }).
		WithTimeout(30*time.Second).WithPolling(time.Second).Should(Equal(int64(1)), "the operator is cut off")
	way.set(false)

	f.Eventually(func(g Gomega) {
		var services corev1.ServiceList
		g.Expect(f.client.List(f.ctx, &services, client.InNamespace(f.namespace))).To(Succeed())
		g.Expect(services.Items).To(HaveLen(2))
		g.Expect(f.get("cow").Status.ObservedGeneration).To(Equal(int64(2)))
		g.Expect(readyOf(f.get("calf")).Reason).To(Equal(v1alpha1.ReasonRollingOut))
	}).WithTimeout(time.Minute).Should(Succeed())
	f.Expect(f.deployment().Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--", "Baa"}))
	f.rollOut("cow")
	f.expectSoon("cow", v1alpha1.ReasonServing)
	f.Expect(f.get("cow").Status.Greeting).To(Equal("Baa"))
}
