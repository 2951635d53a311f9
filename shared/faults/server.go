package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/workbook/shared/binaries"
)

// server is an API server with its etcd, which all schedules of a run share. Each has a namespace of its own.
type server struct {
	config *rest.Config
	base   http.RoundTripper
	mapper apimeta.RESTMapper
	hub    *hub
	ports  ports
}

// startLimit is how long the API server may take to start, on the slowest machine.
const startLimit = 5 * time.Minute

// startServer starts one, until the test ends.
func startServer(t *testing.T, operator Operator) (*server, error) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	assets, err := binaries.Ensure(t.Context(), os.Stderr, "etcd", "kube-apiserver", "kubectl")
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{
		UseExistingCluster: new(false), Scheme: operator.Scheme, CRDDirectoryPaths: operator.CRDs, ErrorIfCRDPathMissing: true,
		BinaryAssetsDirectory: assets, ControlPlaneStartTimeout: startLimit, ControlPlaneStopTimeout: startLimit,
	}
	env.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	// What it keeps is not kept for long.
	env.ControlPlane.Etcd = &envtest.Etcd{}
	env.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true")
	if err := startUntilEnd(t, env); err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	cfg := rest.CopyConfig(env.Config)
	cfg.QPS = -1
	base, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, err
	}
	s := &server{base: base, config: &rest.Config{Host: cfg.Host, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}}
	httpClient := &http.Client{Transport: base}
	if s.mapper, err = apiutil.NewDynamicRESTMapper(s.config, httpClient); err != nil {
		return nil, err
	}
	watcher, err := dynamic.NewForConfigAndClient(s.config, httpClient)
	if err != nil {
		return nil, err
	}
	s.hub = newHub(t.Context(), watcher, s.mapper)
	return s, nil
}

// startUntilEnd starts an API server until the test ends, or its program: Ctrl-C in a terminal reaches neither etcd nor the
// API server, which have process groups of their own.
func startUntilEnd(t *testing.T, env *envtest.Environment) error {
	t.Helper()
	stop := sync.OnceValue(env.Stop)
	begun, ends := make(chan struct{}), make(chan os.Signal, 1)
	for _, end := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(end) { // as in the background of a script, or by nohup
			signal.Notify(ends, end)
		}
	}
	go func() {
		if _, ended := <-ends; ended {
			<-begun
			_ = stop()
			os.Exit(130)
		}
	}()
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Logf("stopping the API server: %v", err)
		}
		signal.Stop(ends)
		close(ends)
	})
	_, err := env.Start()
	close(begun)
	if err != nil {
		return errors.Join(err, stop())
	}
	return nil
}

// through returns a configuration whose requests go through a transport.
func (s *server) through(transport http.RoundTripper) *rest.Config {
	own := rest.CopyConfig(s.config)
	own.Transport = transport
	return own
}

// mapperProvider gives every process the same mapper: what the API server serves does not change.
func (s *server) mapperProvider() func(*rest.Config, *http.Client) (apimeta.RESTMapper, error) {
	return func(*rest.Config, *http.Client) (apimeta.RESTMapper, error) { return s.mapper, nil }
}

// watchKinds watches the kinds of objects.
func (s *server) watchKinds(operator Operator, kinds ...client.Object) error {
	for _, kind := range kinds {
		gvk, err := apiutil.GVKForObject(kind, operator.Scheme)
		if err != nil {
			return err
		}
		if err := s.hub.watch(gvk); err != nil {
			return err
		}
	}
	return nil
}

// Where a Service names no node port, the API server chooses one above these if it can.
const firstPort, portCount = 30000, 86

// portsOfEach is how many of them one schedule may name.
const portsOfEach = 4

// ports are the node ports that suites name. They are of the cluster: two schedules that run at once have different ones.
type ports struct {
	mu   sync.Mutex
	used map[int32]bool
}

func (p *ports) take() (int32, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used == nil {
		p.used = map[int32]bool{}
	}
	for port := int32(firstPort); port < firstPort+portCount; port++ {
		if !p.used[port] {
			p.used[port] = true
			return port, nil
		}
	}
	return 0, errors.New("no node port is left")
}

func (p *ports) release(taken []int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range taken {
		delete(p.used, port)
	}
}

// clean deletes all that a schedule left in its namespace. The namespace stays: no controller would delete it.
func (s *server) clean(ctx context.Context, c client.Client, namespace string) error {
	for _, resource := range s.hub.resources() {
		for _, object := range s.hub.live(namespace, resource) {
			if len(object.GetFinalizers()) > 0 {
				bare := object.DeepCopy()
				bare.SetFinalizers(nil)
				bare.SetResourceVersion("")
				if err := c.Patch(ctx, bare, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
			if err := c.Delete(ctx, object.DeepCopy(), client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return client.IgnoreNotFound(c.Delete(ctx, &corev1.Namespace{ObjectMeta: metaNamed(namespace)}))
}
