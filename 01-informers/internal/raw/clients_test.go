package raw

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/operator"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestRunFailsWithTheReason(t *testing.T) {
	t.Parallel()
	foos := v1alpha1.Resource("foos")
	for name, test := range map[string]struct {
		response *apierrors.StatusError // nil: no server at all
		want     string
	}{
		"no server":       {nil, "listing Foos: "},
		"an unknown user": {apierrors.NewUnauthorized("who?"), "listing Foos: "},
		"no permission":   {apierrors.NewForbidden(foos, "", nil), "listing Foos: foos.samplecontroller.example.com is forbidden"},
		"no CRD":          {apierrors.NewNotFound(foos, ""), "`make install` installs it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			server := newServer(test.response)
			defer server.Close()
			if test.response == nil {
				server.Close()
			}
			err := Run(t.Context(), &rest.Config{Host: server.URL}, operator.Options{MetricsAddress: "0", ProbeAddress: "0"})
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

// The informers try again after a temporary error.
func TestCheckIgnoresTemporaryErrors(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	server := newServer(apierrors.NewInternalError(http.ErrAbortHandler))
	defer server.Close()
	clients, err := newClients(&rest.Config{Host: server.URL})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(clients.check(t.Context())).To(Succeed())

	clients, err = newClients(testserver.Config(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(clients.check(t.Context())).To(Succeed())
}

// newServer starts a server that responds to every request with one error.
func newServer(response *apierrors.StatusError) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := response.ErrStatus
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
	}))
}
