package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"os"

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
	port                       int
	namespace, service, secret string
	certificates               certificates.Certificates
}

func bindConversionFlags(flags *flag.FlagSet) *conversionWebhook {
	var w conversionWebhook
	flags.IntVar(&w.port, "webhook-port", 0, "Where conversions between the versions of the API are served. 0 turns them off: the CRD must then have one version.")
	flags.StringVar(&w.namespace, "webhook-namespace", os.Getenv("POD_NAMESPACE"), "The namespace of the Service and the Secret of the webhook. Default: the variable POD_NAMESPACE.")
	flags.StringVar(&w.service, "webhook-service", "lolcow-webhook-service", "The Service that the CRD names for conversions.")
	flags.StringVar(&w.secret, "webhook-secret", "lolcow-webhook-certificate", "The Secret in which the replicas keep the certificate of the webhook.")
	return &w
}

// setup has the manager serve conversions. The certificate, and the CRD's trust in it, are there before the manager starts: its
// caches need the webhook.
func (w *conversionWebhook) setup(ctx context.Context, mgr ctrl.Manager) error {
	if w.port == 0 {
		return nil
	}
	// The manager's client would watch Secrets and CRDs, so that what it has written can be read.
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
	webhooks.Port = w.port
	webhooks.TLSOpts = append(webhooks.TLSOpts, func(config *tls.Config) { config.GetCertificate = w.certificates.Get })
	if err := conversion.SetupWebhookWithManager(mgr); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker())
}
