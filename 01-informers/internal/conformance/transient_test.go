package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// outage makes every apply of a Deployment fail while it lasts, each time with another text.
type outage struct {
	err    func(n int64) error
	lasts  atomic.Bool
	failed atomic.Int64
}

func (o *outage) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if !o.lasts.Load() || req.Method != http.MethodPatch || !strings.Contains(req.URL.Path, "/deployments/") {
			return next.RoundTrip(req)
		}
		err := o.err(o.failed.Add(1))
		var response *apierrors.StatusError
		if !errors.As(err, &response) {
			return nil, err
		}
		status := response.ErrStatus
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		body, err := json.Marshal(status)
		return &http.Response{
			StatusCode: int(status.Code), Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(bytes.NewReader(body)), Request: req,
		}, err
	})
}

// startWithOutage starts an operator, and deletes the Deployment of a Foo that is Ready while no apply succeeds.
func (e *operatorEnv) startWithOutage(err func(n int64) error) (*v1alpha1.Foo, *outage) {
	e.t.Helper()
	o := &outage{err: err}
	e.startWith(o.wrap)
	f := e.createReady("web", "web-server")
	e.expectEvents(f, available)
	o.lasts.Store(true)
	e.delete(e.deployment("web-server"))
	return f, o
}

// A request that keeps failing is reported once: with one status and one Event.
func TestTransientErrorIsReportedOnce(t *testing.T) {
	t.Parallel()
	for what, err := range map[string]func(n int64) error{
		"a webhook that is down": func(n int64) error {
			return apierrors.NewInternalError(fmt.Errorf(
				`failed calling webhook "w.example.com": Post "https://10.0.0.%d:%d/": dial tcp 10.0.0.%d:8443: i/o timeout after %d.3s`, n, 8000+n, n, n))
		},
		"no connection": func(n int64) error { return fmt.Errorf("dial tcp 10.0.0.%d:443: connect: connection refused", n) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			forEach(t, func(e *operatorEnv) {
				f, o := e.startWithOutage(err)
				ready := e.expect(f, metav1.ConditionFalse, v1alpha1.ReasonAPIError)
				e.Expect(ready.Message).To(And(HavePrefix("applying Deployment web-server: "), Not(ContainSubstring("10.0.0."))))
				e.Expect(f.Status.AvailableReplicas).To(BeZero())
				e.Eventually(o.failed.Load).WithTimeout(e.Soon).Should(BeNumerically(">", 6))
				e.expectEvents(f, available, apiError)
				e.Expect(count(e.writes())["patch foos/status / 200"]).To(Equal(3), "RollingOut, Available and APIError")

				o.lasts.Store(false)
				e.expectAvailable(f, 1)
				e.expectEvents(f, available, apiError, available)
			})
		})
	}
}

// After a Conflict, what was read is out of date. So would be a status that is computed from it.
func TestStatusIsNotWrittenAfterAConflict(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		f, o := e.startWithOutage(func(n int64) error {
			return apierrors.NewConflict(v1alpha1.Resource("deployments"), "web-server", fmt.Errorf("changed for the %dth time", n))
		})
		e.Eventually(o.failed.Load).WithTimeout(e.Soon).Should(BeNumerically(">", 6))
		e.Expect(count(e.writes())["patch foos/status / 200"]).To(Equal(2), "RollingOut and Available")
		o.lasts.Store(false)
		e.expectAvailable(f, 1)
		e.expectEvents(f, available, available)
	})
}
