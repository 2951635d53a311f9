package controller

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// bare is a test's own API server, without the CRD of Goops.
type bare struct {
	*testEnv
	user *envtest.AuthenticatedUser
}

func newBare(t *testing.T) *bare {
	t.Helper()
	apiServer(t) // with it begins stopOnCtrlC
	env := &envtest.Environment{
		UseExistingCluster:          new(false), // whatever USE_EXISTING_CLUSTER is
		Scheme:                      scheme,
		DownloadBinaryAssets:        os.Getenv("KUBEBUILDER_ASSETS") == "",
		DownloadBinaryAssetsVersion: kubernetesVersion,
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	stopping.Lock()
	stopOthers := stopServer
	stopServer = func() {
		_ = env.Stop()
		stopOthers()
	}
	restConfig, err := env.Start()
	stopping.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	b := &bare{testEnv: &testEnv{WithT: NewWithT(t), ctx: ctrl.LoggerInto(t.Context(), testr.New(t)), config: restConfig, namespace: metav1.NamespaceDefault}}
	b.user, err = env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	b.Expect(err).NotTo(HaveOccurred())
	b.client, err = client.New(restConfig, client.Options{Scheme: scheme})
	b.Expect(err).NotTo(HaveOccurred())
	return b
}

// apply does what `make install` (crd) and `make deploy` (default) of a scaffold do: it passes the output of kustomize to
// kubectl. The error has kubectl's message.
func (b *bare) apply(args ...string) error {
	kubectl, err := b.user.Kubectl()
	b.Expect(err).NotTo(HaveOccurred())
	_, stderr, err := kubectl.Run(append([]string{"apply", "--server-side"}, args...)...)
	if err != nil {
		output, _ := io.ReadAll(stderr)
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

func folder(name string) string { return filepath.Join("..", "..", "config", name) }

// deployed is the state on the server after a deployment, without generated values.
type deployed struct {
	CRD      apiextensionsv1.CustomResourceDefinitionSpec
	Operator appsv1.DeploymentSpec
	Role     []rbacv1.PolicyRule
}

func (b *bare) deployed() deployed {
	var crd apiextensionsv1.CustomResourceDefinition
	crds := runtime.NewScheme()
	b.Expect(apiextensionsv1.AddToScheme(crds)).To(Succeed())
	c, err := client.New(b.config, client.Options{Scheme: crds})
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(c.Get(b.ctx, client.ObjectKey{Name: "goops.goop.example.com"}, &crd)).To(Succeed())
	var operator appsv1.Deployment
	b.Expect(b.client.Get(b.ctx, client.ObjectKey{Namespace: "goop-system", Name: "goop-controller-manager"}, &operator)).To(Succeed())
	var role rbacv1.ClusterRole
	b.Expect(b.client.Get(b.ctx, client.ObjectKey{Name: "goop-manager-role"}, &role)).To(Succeed())
	b.Expect(operator.Generation).To(Equal(int64(1)), "nothing was changed after its creation")
	return deployed{crd.Spec, operator.Spec, role.Rules}
}

// Q8: deploy or install first? The order does not matter. What deploy applies includes the CRD, before all objects that
// need it. So deploy alone is enough, and every order has the same result.
func TestSeedQuestion_DeployOrInstallFirst(t *testing.T) {
	t.Parallel()
	var first *deployed
	for _, order := range [][]string{{"default"}, {"crd", "default"}, {"default", "crd"}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			b := newBare(t)
			for _, name := range order {
				b.Expect(b.apply("-k", folder(name))).To(Succeed(), name)
			}
			b.Eventually(func() error {
				return b.apply("-f", filepath.Join(folder("samples"), "v1alpha1_goop.yaml"))
			}, watchTimeout).Should(Succeed(), "a kind is served a moment after its CRD was created")
			left := b.deployed()
			if first == nil {
				first = &left
			}
			b.Expect(left).To(Equal(*first))
		})
	}
}

// Two orders fail: an object before its CRD, at once, and an operator before its CRD, after a while. The operator retries
// every ten seconds. If the CRD is created it works; after CacheSyncTimeout it ends with an error.
func TestSeedQuestion_AnOperatorWaitsForItsCRD(t *testing.T) {
	t.Parallel()
	b := newBare(t)
	sample := filepath.Join(folder("samples"), "v1alpha1_goop.yaml")
	b.Expect(b.apply("-f", sample)).To(MatchError(ContainSubstring(
		`no matches for kind "Goop" in version "goop.example.com/v1alpha1"`)))

	select {
	case err := <-b.manage(t, 2*time.Second):
		b.Expect(err).To(MatchError(ContainSubstring("timed out waiting for cache to be synced for kind source: *v1alpha1.Goop")))
	case <-time.After(watchTimeout):
		t.Fatal("the manager continues without the kind")
	}

	ended := b.manage(t, 0)
	b.Consistently(ended, time.Second).ShouldNot(Receive())
	b.Expect(b.apply("-k", folder("crd"))).To(Succeed())
	b.Eventually(func() error { return b.apply("-f", sample) }, watchTimeout).Should(Succeed())
	b.Eventually(func(g Gomega) {
		var goop v1alpha1.Goop
		g.Expect(b.client.Get(b.ctx, client.ObjectKey{Namespace: b.namespace, Name: "hello"}, &goop)).To(Succeed())
		running := apimeta.FindStatusCondition(goop.Status.Conditions, v1alpha1.ConditionRunning)
		g.Expect(running).To(HaveField("Reason", v1alpha1.ReasonNoEligibleNodes))
	}, watchTimeout).Should(Succeed())
	b.Expect(ended).NotTo(Receive())
}

// manage runs the controller until the test ends. The channel gets its error. A timeout of 0 is the default for its
// caches: two minutes.
func (b *bare) manage(t *testing.T, cacheSyncTimeout time.Duration) <-chan error {
	t.Helper()
	mgr, err := ctrl.NewManager(b.config, ctrl.Options{
		Scheme:     scheme,
		Cache:      CacheOptions(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Logger:     testr.New(t),
		Controller: config.Controller{SkipNameValidation: new(true), CacheSyncTimeout: cacheSyncTimeout},
	})
	b.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.ctx))
	reconciler := NewGoopReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("goop-controller"), clock.RealClock{}, testImages, false)
	b.Expect(reconciler.SetupWithManager(ctx, mgr, ctrlcontroller.Options{MaxConcurrentReconciles: 1})).To(Succeed())
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(over)
		ended <- mgr.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	return ended
}
