package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/api/v1beta1"
)

const (
	// kubernetesVersion is what envtest downloads where KUBEBUILDER_ASSETS names no binaries.
	kubernetesVersion = "v1.37.0"

	webhookNamespace = "lolcow-system"
	webhookService   = "lolcow-webhook-service"
)

// conversionServer is an API server with both versions of the CRD, whose conversions are at a port of this machine. No controller
// of Kubernetes runs.
type conversionServer struct {
	*WithT
	client.Client
	t   *testing.T
	env *envtest.Environment
	// webhook listens where conversions are.
	webhook net.Listener
}

func newConversionServer(t *testing.T, webhook net.Listener) *conversionServer {
	t.Helper()
	s := &conversionServer{WithT: NewWithT(t), t: t, webhook: webhook, env: &envtest.Environment{
		UseExistingCluster: new(false), Scheme: scheme,
		DownloadBinaryAssets: os.Getenv("KUBEBUILDER_ASSETS") == "", DownloadBinaryAssetsVersion: kubernetesVersion,
	}}
	t.Cleanup(func() { _ = s.env.Stop() })
	config, err := s.env.Start()
	if err != nil {
		// A port that was free may have been taken before the API server listened: a second server has other ports.
		_ = s.env.Stop()
		s.env.ControlPlane = envtest.ControlPlane{}
		config, err = s.env.Start()
	}
	s.Expect(err).NotTo(HaveOccurred())
	config.QPS = -1
	s.Client, err = client.New(config, client.Options{Scheme: scheme})
	s.Expect(err).NotTo(HaveOccurred())

	s.Expect(s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: webhookNamespace}})).To(Succeed())
	s.Expect(s.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: webhookNamespace, Name: webhookService},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	})).To(Succeed())
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{s.newCRD()}})
	s.Expect(err).NotTo(HaveOccurred())
	return s
}

// newCRD is the CRD with both versions, without a caBundle.
func (s *conversionServer) newCRD() *apiextensionsv1.CustomResourceDefinition {
	text, err := os.ReadFile(filepath.Join("..", "config", "crd", "versions", "my.domain_lolcows.yaml"))
	s.Expect(err).NotTo(HaveOccurred())
	var crd apiextensionsv1.CustomResourceDefinition
	s.Expect(yaml.UnmarshalStrict(text, &crd)).To(Succeed())
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
				Namespace: webhookNamespace, Name: webhookService, Path: new("/convert"), Port: new(int32(portOf(s.webhook))),
			}},
		},
	}
	return &crd
}

// startOperator runs the operator until the test ends or stop is called, and waits until it is ready.
func (s *conversionServer) startOperator() *runningOperator {
	s.t.Helper()
	user, err := s.env.AddUser(envtest.User{Name: "operator", Groups: []string{"system:masters"}}, nil)
	s.Expect(err).NotTo(HaveOccurred())
	content, err := user.KubeConfig()
	s.Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(s.t.TempDir(), "kubeconfig")
	s.Expect(os.WriteFile(kubeconfig, content, 0o600)).To(Succeed())
	return startOperator(s.t, kubeconfig, s.webhook)
}

func cow() types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: "cow"} }

// alpha is the object in the version that is stored: nothing converts it.
func (s *conversionServer) alpha() *v1alpha1.Lolcow {
	s.t.Helper()
	var alpha v1alpha1.Lolcow
	s.Expect(s.Get(s.t.Context(), cow(), &alpha)).To(Succeed())
	return &alpha
}

func (s *conversionServer) beta() *v1beta1.Lolcow {
	s.t.Helper()
	var beta v1beta1.Lolcow
	s.Expect(s.Get(s.t.Context(), cow(), &beta)).To(Succeed())
	return &beta
}

// betaErr is what a client that reads v1beta1 gets.
func (s *conversionServer) betaErr() error { return s.Get(s.t.Context(), cow(), &v1beta1.Lolcow{}) }

func (s *conversionServer) crd() *apiextensionsv1.CustomResourceDefinition {
	s.t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	s.Expect(s.Get(s.t.Context(), types.NamespacedName{Name: "lolcows.my.domain"}, &crd)).To(Succeed())
	return &crd
}

// caBundle is what the API server trusts, or is about to.
func (s *conversionServer) caBundle() []byte {
	return s.crd().Spec.Conversion.Webhook.ClientConfig.CABundle
}
