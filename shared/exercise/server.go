package exercise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/workbook/shared/binaries"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/proc"
)

// auditPolicy notes every request, without its body.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// server is an etcd and an API server.
type server struct {
	dir         string
	environment *envtest.Environment
	config      *rest.Config
	discovery   *discovery.DiscoveryClient
	metadata    metadata.Interface
	// etcd is the URL of etcd, or empty in a cluster.
	etcd string
	// first are the objects that were there at the start.
	first map[object]bool
	busy  bool
}

// record is what is in the file of a server besides its access.
type record struct {
	check.Server
	Holder proc.Process `json:"holder"`
	Shared bool         `json:"shared"`
}

func (s *server) file() string { return filepath.Join(s.dir, serverFile) }

const serverFile = "server.json"

func serversDir(root string) string { return filepath.Join(root, ".kube", "exercises") }

// startLimit is how long a server may take to start, on a machine that has much else to do.
const startLimit = 3 * time.Minute

// start starts a server in a folder of its own. One that is shared has the CRDs of the stages; on one of its own, a check
// begins with what Kubernetes has.
func start(ctx context.Context, root string, shared bool, note func(string)) (_ *server, err error) {
	sweep(ctx, root)
	var progress strings.Builder
	assets, err := binaries.Ensure(ctx, &noteWriter{note: note, all: &progress}, "etcd", "kube-apiserver")
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, progress.String())
	}
	if err := os.MkdirAll(serversDir(root), 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(serversDir(root), "")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, environment: &envtest.Environment{UseExistingCluster: new(false)}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if err := s.configure(root, assets, shared); err != nil {
		return nil, err
	}
	note("the API server starts")
	logf.SetLogger(logr.Discard())
	if _, err := s.environment.Start(); err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	if err := s.connect(s.environment.Config); err != nil {
		return nil, err
	}
	s.etcd = s.environment.ControlPlane.Etcd.URL.String()
	if s.first, err = s.objects(ctx); err != nil {
		return nil, err
	}
	return s, s.write(ctx, shared)
}

// configure says how etcd and the API server are started, with everything that they write in the server's folder.
func (s *server) configure(root, assets string, shared bool) (err error) {
	e := s.environment
	e.BinaryAssetsDirectory, e.ControlPlaneStartTimeout, e.ControlPlaneStopTimeout = assets, startLimit, startLimit
	if shared {
		e.CRDInstallOptions.MaxTime = startLimit
		if e.CRDDirectoryPaths, err = filepath.Glob(filepath.Join(root, "0[1-4]-*", "config", "crd", "bases")); err != nil {
			return err
		}
	}
	policy := filepath.Join(s.dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	e.ControlPlane.Etcd = &envtest.Etcd{DataDir: filepath.Join(s.dir, "etcd")}
	e.ControlPlane.GetAPIServer().Configure().
		Set("audit-policy-file", policy).Set("audit-log-path", s.auditLog()).
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	return os.Mkdir(e.ControlPlane.Etcd.DataDir, 0o700)
}

func (s *server) auditLog() string { return filepath.Join(s.dir, "audit.log") }

// connect makes the clients for what runs leave.
func (s *server) connect(config *rest.Config) (err error) {
	s.config = rest.CopyConfig(config)
	s.config.QPS = -1
	// It removes finalizers of what is not valid any more, which the API server warns of.
	s.config.WarningHandlerWithContext = rest.NoWarnings{}
	if s.discovery, err = discovery.NewDiscoveryClientForConfig(s.config); err != nil {
		return err
	}
	s.metadata, err = metadata.NewForConfig(s.config)
	return err
}

// write writes the file by which checks, and other processes, reach the server.
func (s *server) write(ctx context.Context, shared bool) error {
	me, err := proc.Of(ctx, os.Getpid())
	if err != nil {
		return err
	}
	content, err := json.Marshal(record{Holder: me, Shared: shared, Server: check.Server{
		Host: s.config.Host, CA: s.config.CAData, Cert: s.config.CertData, Key: s.config.KeyData, AuditLog: s.auditLog(),
		Etcd: s.etcd,
	}})
	if err != nil {
		return err
	}
	temp := s.file() + ".new"
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, s.file())
}

func (s *server) stop() error {
	err := s.environment.Stop()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// ready returns an error if the server does not respond within a few seconds.
func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var code int
	err := s.discovery.RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code).Error()
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("the API server says %d", code)
	}
	return err
}

// attach returns the shared server of another process in this clone, or nil.
func attach(ctx context.Context, root string) *server {
	files, err := filepath.Glob(filepath.Join(serversDir(root), "*", serverFile))
	if err != nil {
		return nil
	}
	for _, file := range files {
		r, err := readRecord(file)
		if err != nil || !r.Shared || !r.Holder.Alive(ctx) {
			continue
		}
		s := &server{dir: filepath.Dir(file)}
		config := &rest.Config{Host: r.Host, TLSClientConfig: rest.TLSClientConfig{CAData: r.CA, CertData: r.Cert, KeyData: r.Key}}
		if s.connect(config) == nil && s.ready(ctx) == nil {
			return s
		}
	}
	return nil
}

func readRecord(file string) (record, error) {
	var r record
	content, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(content, &r)
}

// fresh is how long a folder may be without a file that names its holder: the server in it starts.
const fresh = 2 * time.Minute

// sweep ends the servers of processes that were killed.
func sweep(ctx context.Context, root string) {
	entries, err := os.ReadDir(serversDir(root))
	if err != nil {
		return
	}
	for _, entry := range entries {
		dir := filepath.Join(serversDir(root), entry.Name())
		r, err := readRecord(filepath.Join(dir, serverFile))
		if err == nil && r.Holder.Alive(ctx) {
			continue
		}
		if info, statErr := entry.Info(); err != nil && (statErr != nil || time.Since(info.ModTime()) < fresh) {
			continue
		}
		if proc.End(ctx, &strings.Builder{}, proc.Naming(ctx, dir), time.Second) == nil {
			_ = os.RemoveAll(dir)
		}
	}
}

// noteWriter passes lines on.
type noteWriter struct {
	note func(string)
	all  *strings.Builder
}

func (w *noteWriter) Write(p []byte) (int, error) {
	w.all.Write(p)
	if text := strings.TrimSpace(string(p)); text != "" {
		w.note(text)
	}
	return len(p), nil
}
