// Package certificates keeps the certificate of the webhook server: in a Secret, which all replicas share, and in memory, from
// where it is served. Before a replica serves a certificate, the CRDs whose conversion is at this server trust it.
//
// A certificate is its own CA. Its successor is trusted a day before it is served, and it is trusted itself until it expires. So
// no request fails in a rotation, while one replica serves the old certificate and another one the new. If an administrator
// deletes the Secret, the new certificate is served at once, and requests may fail for a minute, until all replicas have it.
package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// fieldOwner owns caBundle in CRDs: another owner that applies the CRD without it does not remove it.
	fieldOwner = "lolcow-certificates"

	// period is how often a replica looks at the Secret and the CRDs.
	period = time.Minute

	// maxTries bounds the writes that another client was faster with.
	maxTries = 5
)

// Certificates keeps the certificate of one webhook server.
type Certificates struct {
	// Reader has no cache: there is no permission to list Secrets, and the certificate is needed before the caches are full.
	Reader client.Reader
	Writer client.Writer
	Clock  clock.WithTicker
	// Secret has the certificate.
	Secret types.NamespacedName
	// DNSNames are the names that the certificate is for.
	DNSNames []string
	// CRDs are the names of the CRDs that have to trust it.
	CRDs []string

	served atomic.Pointer[tls.Certificate]
}

// Get returns the certificate to serve: it is the GetCertificate of a tls.Config.
func (c *Certificates) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	certificate := c.served.Load()
	if certificate == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return certificate, nil
}

// Sync reads the Secret, renews what is due, and has the CRDs trust it. Then it serves the certificate. The operator calls it
// before the manager starts: no list of objects that have to be converted succeeds without a certificate.
func (c *Certificates) Sync(ctx context.Context) error {
	var err error
	for range maxTries {
		err = c.try(ctx)
		// Another client wrote the Secret or a CRD, created the Secret or deleted it, after it was read here.
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return err
}

// try reads the CRDs before the Secret: a replica that is slow would otherwise replace a caBundle by an older one.
func (c *Certificates) try(ctx context.Context) error {
	crds := make([]apiextensionsv1.CustomResourceDefinition, len(c.CRDs))
	for i, name := range c.CRDs {
		if err := c.Reader.Get(ctx, client.ObjectKey{Name: name}, &crds[i]); err != nil {
			return fmt.Errorf("reading CRD %s: %w", name, err)
		}
	}
	data, serving, err := c.syncSecret(ctx)
	if err != nil {
		return fmt.Errorf("renewing Secret %s: %w", c.Secret, err)
	}
	for i := range crds {
		if err := c.trust(ctx, &crds[i], data[keyBundle]); err != nil {
			return err
		}
	}
	c.served.Store(&serving.parsed)
	return nil
}

// Run calls Sync until ctx ends. It is no Runnable of the manager, which would start it once the caches are full: they may be
// waiting for a caBundle.
func (c *Certificates) Run(ctx context.Context) {
	ticker := c.Clock.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			if err := c.Sync(ctx); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Cannot keep the certificate of the webhook; retrying", "after", period)
			}
		}
	}
}

// syncSecret writes the Secret if something in it is due. If another replica writes it at the same time, one of them fails.
func (c *Certificates) syncSecret(ctx context.Context) (map[string][]byte, *pair, error) {
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Secret.Namespace, Name: c.Secret.Name}}
	readErr := c.Reader.Get(ctx, c.Secret, &secret)
	if client.IgnoreNotFound(readErr) != nil {
		return nil, nil, readErr
	}
	data, serving, err := renew(secret.Data, c.DNSNames, c.Clock.Now())
	if err != nil || maps.EqualFunc(data, secret.Data, bytes.Equal) {
		return data, serving, err
	}
	secret.Data = data
	if readErr != nil {
		return data, serving, c.Writer.Create(ctx, &secret, client.FieldOwner(fieldOwner))
	}
	return data, serving, c.Writer.Update(ctx, &secret, client.FieldOwner(fieldOwner))
}

// trust writes the caBundle of a CRD, if it is not this one, and the CRD is as it was read.
func (c *Certificates) trust(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, bundle []byte) error {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return fmt.Errorf("CRD %s has no conversion webhook: install the CRD of this release", crd.Name)
	}
	if bytes.Equal(conversion.Webhook.ClientConfig.CABundle, bundle) {
		return nil
	}
	patch := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiextensionsv1.SchemeGroupVersion.String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": crd.Name, "uid": string(crd.UID), "resourceVersion": crd.ResourceVersion},
		"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{
			"caBundle": base64.StdEncoding.EncodeToString(bundle),
		}}}},
	}}
	if err := c.Writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(fieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing caBundle of CRD %s: %w", crd.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Wrote caBundle", "crd", crd.Name)
	return nil
}
