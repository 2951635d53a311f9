package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/api/v1beta1"
	"example.com/workbook/02-lolcow/internal/certificates"
	"example.com/workbook/02-lolcow/internal/conversion"
)

const day = 24 * time.Hour

// steppedServer converts in this process, at a clock that the test steps. The API server's clock is the machine's, so what is valid
// for it depends on when the stepped clock begins. Its conversions reach one replica after the other, each by a connection of
// its own.
type steppedServer struct {
	*conversionServer
	clock *testclock.FakeClock
	// changing is locked while the replicas are replaced.
	changing sync.Mutex
	replicas [2]*certificates.Certificates
	// served are the certificates that were served, by number.
	served sync.Map
}

func newSteppedServer(t *testing.T) *steppedServer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &steppedServer{conversionServer: newConversionServer(t, listener)}
	s.restart(time.Now())

	mgr, err := ctrl.NewManager(s.env.Config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(conversion.SetupWebhookWithManager(mgr)).To(Succeed())
	handler := mgr.GetWebhookServer().WebhookMux()
	connections := 0
	webhook := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			handler.ServeHTTP(w, r)
		}),
		TLSConfig: &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			s.changing.Lock()
			defer s.changing.Unlock()
			connections++
			certificate, err := s.replicas[connections%2].Get(hello)
			if err == nil {
				s.served.Store(certificate.Leaf.SerialNumber.String(), true)
			}
			return certificate, err
		}},
		ErrorLog:          log.New(io.Discard, "", 0), // a client that does not trust the certificate is no error here
		ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = webhook.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = webhook.Close() })

	s.Expect(s.Create(t.Context(), &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Namespace: cow().Namespace, Name: cow().Name}, Spec: v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(30001))},
	})).To(Succeed())
	return s
}

// restart has both replicas begin anew at a time, with a Secret that does not exist yet.
func (s *steppedServer) restart(now time.Time) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.clock = testclock.NewFakeClock(now)
	secret := types.NamespacedName{Namespace: webhookNamespace, Name: fmt.Sprintf("certificate-%d", now.Unix())}
	for i := range s.replicas {
		s.replicas[i] = &certificates.Certificates{
			Reader: s, Writer: s, Clock: s.clock, Secret: secret,
			DNSNames: []string{webhookService + "." + webhookNamespace + ".svc"}, CRDs: []string{"lolcows.my.domain"},
		}
	}
	s.served.Clear()
}

func (s *steppedServer) sync(replicas ...*certificates.Certificates) {
	s.t.Helper()
	for _, replica := range replicas {
		s.Expect(replica.Sync(s.t.Context())).To(Succeed())
	}
}

func (s *steppedServer) expectServed(certificates int) {
	s.t.Helper()
	found := 0
	s.served.Range(func(any, any) bool { found++; return true })
	s.Expect(found).To(Equal(certificates))
}

// expectConversions waits until the API server converts.
func (s *steppedServer) expectConversions() {
	s.t.Helper()
	s.Eventually(s.betaErr).Should(Succeed(), "the API server has the new caBundle a moment later")
}

// startReaders has clients read all the time. more waits until they have read often; stop returns their errors.
func (s *steppedServer) startReaders() (more func(), stop func() []error) {
	const count = 4
	ctx, cancel := context.WithCancel(s.t.Context())
	var reads atomic.Int64
	errs := make([]error, count)
	var readers sync.WaitGroup
	for i := range count {
		readers.Go(func() {
			for ctx.Err() == nil {
				if err := s.Get(ctx, cow(), &v1beta1.Lolcow{}); err != nil && ctx.Err() == nil {
					errs[i] = err
				}
				reads.Add(1)
			}
		})
	}
	s.t.Cleanup(cancel)
	more = func() {
		s.t.Helper()
		want := reads.Load() + 10*count
		s.Eventually(reads.Load).Should(BeNumerically(">", want))
	}
	return more, func() []error { cancel(); readers.Wait(); return errs }
}

func TestConversionsOfAnAPIServer(t *testing.T) {
	t.Parallel()
	s := newSteppedServer(t)
	// They share the CRD.
	s.expired()
	s.rotation()
	s.caBundleRemoved()
	s.roundTrips()
	s.serverSideApply()
	s.unconvertible()
}

// All replicas were stopped until the certificate had expired; the one that starts first makes another.
func (s *steppedServer) expired() {
	s.restart(time.Now().Add(-100 * day))
	s.sync(s.replicas[:]...)
	s.Eventually(s.betaErr).Should(MatchError(ContainSubstring("certificate has expired")))
	s.alpha()

	s.clock.SetTime(time.Now())
	s.sync(s.replicas[:]...)
	s.expectConversions()
}

// No request fails while the certificate is replaced, one replica being slower than the other.
func (s *steppedServer) rotation() {
	s.restart(time.Now().Add(-60 * day))
	fast, slow := s.replicas[0], s.replicas[1]
	s.sync(fast, slow)
	first := s.caBundle()
	s.expectConversions()
	more, stop := s.startReaders()
	more()
	s.expectServed(1)

	s.clock.Step(60 * day)
	s.sync(fast)
	s.Expect(s.caBundle()).To(HavePrefix(string(first)))
	s.Expect(s.caBundle()).NotTo(Equal(first), "the successor is trusted, and not yet served")
	more()
	s.expectServed(1)
	s.clock.Step(day)
	s.sync(fast)
	more()
	s.expectServed(2)
	s.sync(slow)
	more()

	s.clock.Step(30 * day)
	s.sync(fast, slow)
	s.Expect(s.caBundle()).NotTo(ContainSubstring(string(first)), "what has expired is not trusted")
	more()
	s.expectServed(2)
	s.Expect(stop()).To(HaveEach(BeNil()))
}

// An administrator removes caBundle. The operator writes it again within a minute.
func (s *steppedServer) caBundleRemoved() {
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	s.restart(time.Now())
	s.sync(s.replicas[:]...)
	s.expectConversions()
	go s.replicas[0].Run(ctx)
	s.Eventually(s.clock.HasWaiters).Should(BeTrue())

	patch := `{"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": %s}}}}}`
	rubbish := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, `"Cg=="`))
	s.Expect(s.Patch(ctx, s.crd(), rubbish)).To(MatchError(ContainSubstring("unable to load root certificates")))

	s.Expect(s.Patch(ctx, s.crd(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, "null")))).To(Succeed())
	s.Eventually(s.betaErr).Should(MatchError(ContainSubstring("certificate signed by unknown authority")))
	s.alpha()
	s.Eventually(func() error {
		s.clock.Step(time.Minute)
		return s.betaErr()
	}).Should(Succeed())
	s.Expect(s.ownedByTheOperator()).To(MatchJSON(onlyCABundle))
}
