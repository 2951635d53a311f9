// Package connect is what programs need to connect to a cluster: errors that say what to do, and watches that do not hang.
package connect

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
)

// Explain adds to an error what the user can do about it. It returns other errors, and nil, unchanged.
func Explain(err error) error {
	var certificate *tls.CertificateVerificationError
	var request *url.Error
	var network *net.OpError
	var groups *discovery.ErrGroupDiscoveryFailed
	switch {
	case err == nil:
		return nil
	case errors.As(err, &certificate):
		return fmt.Errorf("this is not the cluster that the kubeconfig is for: %w; %s", err, renew)
	// net/http makes a url.Error of every error before the response, time-outs too.
	case errors.As(err, &request), errors.As(err, &network):
		return fmt.Errorf("the cluster does not answer: %w; is it up? \"make cluster\" brings it up", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not know who you are: %w; %s", err, renew)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the kubeconfig's user lacks a permission: %w", err)
	case apimeta.IsNoMatchError(err), errors.As(err, &groups):
		return fmt.Errorf("the cluster does not know this resource: %w; \"kubectl api-resources\" lists those it knows", err)
	}
	return err
}

const renew = "the kubeconfig may be of an earlier cluster: \"make cluster\" writes a new one"
