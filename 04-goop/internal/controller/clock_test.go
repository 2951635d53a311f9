package controller

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
)

type respond func(*http.Request) (*http.Response, error)

func (r respond) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

func TestServerClock(t *testing.T) {
	t.Parallel()
	server := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		local time.Duration
		date  string
		want  time.Duration
	}{
		"ahead":             {time.Hour, server.Format(http.TimeFormat), 0},
		"behind":            {-time.Hour, server.Format(http.TimeFormat), 0},
		"nearly right":      {3 * time.Second, server.Format(http.TimeFormat), 3 * time.Second},
		"no date":           {time.Hour, "", time.Hour},
		"an invalid header": {time.Hour, "noon", time.Hour},
	} {
		g := NewWithT(t)
		local := testclock.NewFakeClock(server.Add(test.local))
		clock := NewServerClock(local)
		transport := clock.Wrap(respond(func(*http.Request) (*http.Response, error) {
			return &http.Response{Header: http.Header{"Date": {test.date}}, Body: http.NoBody}, nil
		}))
		response, err := transport.RoundTrip(nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(clock.Now()).To(Equal(server.Add(test.want)), name)
		local.Step(time.Minute)
		g.Expect(clock.Since(server)).To(Equal(test.want+time.Minute), name)
	}
}

// The clock of a leader is an hour ahead. What it writes is not.
func TestTimesAreThoseOfTheAPIServer(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.clock.SetTime(time.Now().Add(time.Hour))
	clock := NewServerClock(f.clock)
	f.config = rest.CopyConfig(f.config)
	f.config.Wrap(clock.Wrap)
	f.use()
	f.reconciler.clock = clock
	f.submitQuietly(cleanup, deadline(60))
	reconcilesUntil := func(what func(g Gomega)) {
		f.Eventually(func(g Gomega) {
			f.reconciles(1)
			f.simulateDaemonSets()
			what(g)
		}).WithTimeout(watchTimeout).Should(Succeed())
	}
	reconcilesUntil(func(g Gomega) { g.Expect(f.podList()).NotTo(BeEmpty()) })
	f.Expect(f.goop().Ended()).To(BeFalse())
	f.kubelet("a/0", hasFinished(0, ""))
	reconcilesUntil(func(g Gomega) { g.Expect(f.goop().Ended()).To(BeTrue()) })
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	reconcilesUntil(func(g Gomega) { g.Expect(f.goop().Status.CleanupStartTime).NotTo(BeNil()) })
	status := f.goop().Status
	for name, written := range map[string]*metav1.Time{
		"start": status.StartTime, "completion": status.CompletionTime, "cleanup": status.CleanupStartTime,
	} {
		f.Expect(written).To(HaveValue(HaveField("Time", BeTemporally("~", time.Now(), time.Minute))), name)
	}
	for _, condition := range status.Conditions {
		f.Expect(condition.LastTransitionTime.Time).To(BeTemporally("~", time.Now(), time.Minute), condition.Type)
	}
}
