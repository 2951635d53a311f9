package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"example.com/workbook/02-lolcow/api/v1beta1"
	"example.com/workbook/02-lolcow/internal/certificates"
	"example.com/workbook/02-lolcow/internal/conversion"
)

func init() {
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(v1beta1.AddToScheme(scheme))
}

// conversionWebhook converts Lolcows for the API server, where the CRD has both versions.
type conversionWebhook struct {
	address                    string
	namespace, service, secret string
	certificates               certificates.Certificates
}

func bindConversionFlags(flags *flag.FlagSet) *conversionWebhook {
	var w conversionWebhook
	flags.StringVar(&w.address, "webhook-bind-address", "0", "Where conversions between the versions of the API are served. 0 turns them off: the CRD must then have one version.")
	flags.StringVar(&w.namespace, "webhook-namespace", os.Getenv("POD_NAMESPACE"), "The namespace of the Service and the Secret of the webhook. Default: the variable POD_NAMESPACE.")
	flags.StringVar(&w.service, "webhook-service", "lolcow-webhook-service", "The Service that the CRD names for conversions.")
	flags.StringVar(&w.secret, "webhook-secret", "lolcow-webhook-certificate", "The Secret in which the replicas keep the certificate of the webhook.")
	return &w
}

// setup has the manager serve conversions. The certificate, and the CRD's trust in it, are there before the manager starts: its
// caches need the webhook.
func (w *conversionWebhook) setup(ctx context.Context, mgr ctrl.Manager) error {
	if w.address == "0" {
		return nil
	}
	if w.namespace == "" {
		return errors.New("the namespace of its Service and its Secret is not known: give --webhook-namespace or set POD_NAMESPACE")
	}
	host, text, err := net.SplitHostPort(w.address)
	if err != nil {
		return fmt.Errorf("reading --webhook-bind-address: %w", err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return fmt.Errorf("reading the port of --webhook-bind-address: %w", err)
	}
	// The manager's client would wait for ever: its Create waits for a cache of Secrets, which starts with the manager.
	uncached, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	w.certificates.Reader, w.certificates.Writer, w.certificates.Clock = uncached, uncached, clock.RealClock{}
	w.certificates.Secret = types.NamespacedName{Namespace: w.namespace, Name: w.secret}
	w.certificates.DNSNames = []string{fmt.Sprintf("%s.%s.svc", w.service, w.namespace)}
	w.certificates.CRDs = []string{"lolcows." + v1beta1.SchemeGroupVersion.Group}
	if err := w.certificates.Sync(ctx); err != nil {
		return err
	}
	go w.certificates.Run(ctx)

	webhooks := &mgr.GetWebhookServer().(*webhook.DefaultServer).Options
	webhooks.Host, webhooks.Port = host, int(port)
	webhooks.TLSOpts = append(webhooks.TLSOpts, func(config *tls.Config) { config.GetCertificate = w.certificates.Get })
	if err := conversion.SetupWebhookWithManager(mgr); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker())
}
