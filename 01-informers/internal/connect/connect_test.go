package connect_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"example.com/workbook/01-informers/internal/connect"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	noConnection := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"no server":    {&url.Error{Op: "Get", Err: noConnection}, "the cluster does not answer: "},
		"a connection": {noConnection, "the cluster does not answer: "},
		"unknown name": {&url.Error{Op: "Get", Err: &net.DNSError{Name: "nowhere"}}, "the cluster does not answer: "},
		"certificate": {
			&url.Error{Op: "Get", Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}},
			"this is not the cluster that the kubeconfig is for: ",
		},
		"unauthorized": {apierrors.NewUnauthorized("no"), "the cluster does not know who you are: "},
		"forbidden":    {apierrors.NewForbidden(pods, "", errors.New("no")), "the kubeconfig's user lacks a permission: "},
		"no such kind": {&apimeta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Foo"}}, "the cluster does not know this resource: "},
		"broken group": {&discovery.ErrGroupDiscoveryFailed{}, "the cluster does not know this resource: "},
		"not found":    {apierrors.NewNotFound(pods, "a"), `pods "a" not found`},
		"another":      {errors.New("no luck"), "no luck"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			wrapped := fmt.Errorf("listing pods: %w", test.err)
			for _, err := range []error{test.err, wrapped} {
				explained := connect.Explain(err)
				g.Expect(explained).To(MatchError(ContainSubstring(test.want)))
				g.Expect(errors.Is(explained, err)).To(BeTrue(), "it wraps the error")
			}
		})
	}
	NewWithT(t).Expect(connect.Explain(nil)).To(Succeed())
}
