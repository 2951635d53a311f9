package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/workbook/shared/binaries"
	"example.com/workbook/shared/config"
)

// componentNames are the programs of an embedded cluster, in the order in which they start.
var componentNames = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// isComponent matches by prefix: some systems name a process after the file that a link leads to,
// and those in the cache carry a version.
func isComponent(name string) bool {
	for _, component := range componentNames {
		if strings.HasPrefix(name, component) {
			return true
		}
	}
	return false
}

//go:embed audit-policy.yaml
var auditPolicy []byte

// admissionPlugins are switched on in addition to Kubernetes' defaults, on both kinds of cluster.
// The second rejects an owner reference with blockOwnerDeletion from a user who may not update the
// owner's finalizers, as OpenShift does: an operator that lacks the permission fails here too.
const admissionPlugins = "NodeRestriction,OwnerReferencesPermissionEnforcement"

// Audit logs are rotated at this size, in megabytes, and this many old ones are kept: enough for a
// benchmark to count in, and a bound on what a cluster that is left up can fill.
const auditMaxSize, auditMaxBackup = "200", "2"

// plane is an embedded cluster while it is being started.
type plane struct {
	layout   layout
	context  string
	binaries string
	envtest.ControlPlane
}

// startEmbedded starts the processes of a cluster as children of this one and waits until pods can
// run. After an error, endEmbedded removes what is left.
func startEmbedded(ctx context.Context, out io.Writer, name string) error {
	l, err := embeddedLayout(name)
	if err != nil {
		return err
	}
	dir, err := binaries.Ensure(ctx, out, componentNames...)
	if err != nil {
		return err
	}
	if err := l.empty(); err != nil {
		return err
	}
	hash, err := embeddedHash()
	if err != nil {
		return err
	}
	s, err := l.begin(ctx, hash)
	if err != nil {
		return err
	}

	p := &plane{layout: l, context: ContextName(KindEmbedded, name), binaries: dir}
	installCRDs := func(ctx context.Context) error { return p.installCRDs(ctx, out) }
	for _, start := range []func(context.Context) error{
		p.startEtcd, p.startAPIServer, p.writeKubeconfig, installCRDs, p.startControllerManager, p.startScheduler, p.startKwok,
	} {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := start(ctx); err != nil {
			return fmt.Errorf("%w (logs are in %s)", err, l.logs())
		}
	}
	cfg, err := restConfig(l.kubeconfig(), p.context)
	if err != nil {
		return err
	}
	if err := prepareEmbedded(ctx, cfg, name); err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, l.logs())
	}
	return l.complete(ctx, s)
}

// empty makes the folders of a start. The logs of the last run have told what they could.
func (l layout) empty() error {
	for _, path := range []string{l.run(), l.logs(), filepath.Dir(l.auditLog())} {
		if err := errors.Join(os.RemoveAll(path), os.MkdirAll(path, 0o700)); err != nil {
			return fmt.Errorf("creating %s: %w", path, err)
		}
	}
	return nil
}

func (p *plane) startEtcd(context.Context) error {
	log, err := p.log("etcd")
	if err != nil {
		return err
	}
	data := filepath.Join(p.layout.run(), "etcd")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("creating a folder for etcd: %w", err)
	}
	return again(func() error {
		p.Etcd = &envtest.Etcd{Path: filepath.Join(p.binaries, "etcd"), DataDir: data, StartTimeout: startTimeout, Out: log, Err: log}
		p.Etcd.Configure().Set("unsafe-no-fsync", "true") // what it has is worth nothing when it has ended
		if err := p.Etcd.Start(); err != nil {
			return fmt.Errorf("starting etcd: %w", err)
		}
		return nil
	})
}

// startTimeout is for a machine that has much else to do: envtest's default of 20 seconds is not enough for it.
const startTimeout = 90 * time.Second

// again tries three times to start what listens at ports that are chosen for it: they were free at that moment, and a
// connection of another program may have got one since.
func again(start func() error) (err error) {
	for range 3 {
		if err = start(); err == nil {
			return nil
		}
	}
	return err
}

func (p *plane) startAPIServer(context.Context) error {
	log, err := p.log("kube-apiserver")
	if err != nil {
		return err
	}
	certs := filepath.Join(p.layout.run(), "apiserver")
	policy := filepath.Join(p.layout.run(), "audit-policy.yaml")
	if err := os.WriteFile(policy, auditPolicy, 0o600); err != nil {
		return fmt.Errorf("preparing kube-apiserver: %w", err)
	}
	return again(func() error {
		// envtest does not read the certificates of a start that failed, and would know no CA.
		if err := errors.Join(os.RemoveAll(certs), os.MkdirAll(certs, 0o700)); err != nil {
			return fmt.Errorf("preparing kube-apiserver: %w", err)
		}
		p.APIServer = &envtest.APIServer{
			Path: filepath.Join(p.binaries, "kube-apiserver"), CertDir: certs, EtcdURL: p.Etcd.URL, StartTimeout: startTimeout, Out: log, Err: log,
		}
		args := p.APIServer.Configure()
		for flag, value := range apiServerFlags() {
			args.Set(flag, value)
		}
		args.Set("audit-policy-file", policy)
		args.Set("audit-log-path", p.layout.auditLog())
		// envtest switches this plugin off because no controller makes the default ServiceAccounts there. Here
		// the controller manager does.
		args.Set("disable-admission-plugins", "")
		if err := p.APIServer.Start(); err != nil {
			return fmt.Errorf("starting kube-apiserver: %w", err)
		}
		return nil
	})
}

// NodePortsVariable names the variable of the environment that says which node ports an embedded cluster has, as in
// --service-node-port-range of the API server: a benchmark makes more Services than the default has room for.
const NodePortsVariable = "NODE_PORTS"

func apiServerFlags() map[string]string {
	flags := map[string]string{
		"enable-admission-plugins": admissionPlugins,
		"audit-log-maxsize":        auditMaxSize,
		"audit-log-maxbackup":      auditMaxBackup,
		// envtest's default has room for 254 Services; the benchmark makes a thousand.
		"service-cluster-ip-range": "10.96.0.0/16",
	}
	if ports := os.Getenv(NodePortsVariable); ports != "" {
		flags["service-node-port-range"] = ports
	}
	return flags
}

// writeKubeconfig makes the administrator's kubeconfig, and the CA's certificate for the others.
func (p *plane) writeKubeconfig(context.Context) error {
	if err := os.WriteFile(p.caFile(), p.APIServer.CA, 0o600); err != nil {
		return fmt.Errorf("writing the CA's certificate: %w", err)
	}
	return p.writeUser(p.layout.kubeconfig(), "kubernetes-admin", "system:masters")
}

func (p *plane) caFile() string { return filepath.Join(p.layout.run(), "ca.crt") }

// writeUser makes a kubeconfig for a user of the control plane.
func (p *plane) writeUser(path, user string, groups ...string) error {
	account, err := p.AddUser(envtest.User{Name: user, Groups: groups}, &rest.Config{})
	if err != nil {
		return fmt.Errorf("making credentials for %s: %w", user, err)
	}
	if err := clientcmd.WriteToFile(*kubeconfigFor(p.context, account.Config()), path); err != nil {
		return fmt.Errorf("making credentials for %s: %w", user, err)
	}
	return nil
}

// nodeGrace is for how long a node that says nothing is believed to be there. One machine that plays thousands of them
// for a benchmark cannot renew their leases as thousands of kubelets do.
const nodeGrace = "1h"

// The client rates of controller manager and scheduler are raised for benchmarks: with the defaults
// of 20 and 50 requests a second, those are what is measured.
func (p *plane) startControllerManager(context.Context) error {
	kubeconfig := filepath.Join(p.layout.run(), "controller-manager.kubeconfig")
	if err := p.writeUser(kubeconfig, "system:kube-controller-manager"); err != nil {
		return err
	}
	return p.start("kube-controller-manager", "--kubeconfig="+kubeconfig,
		"--service-account-private-key-file="+filepath.Join(p.APIServer.CertDir, "sa-signer.key"),
		"--root-ca-file="+p.caFile(), "--use-service-account-credentials=true",
		"--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=2000",
		"--node-monitor-grace-period="+nodeGrace)
}

func (p *plane) startScheduler(context.Context) error {
	kubeconfig := filepath.Join(p.layout.run(), "scheduler.kubeconfig")
	if err := p.writeUser(kubeconfig, "system:kube-scheduler"); err != nil {
		return err
	}
	return p.start("kube-scheduler", "--kubeconfig="+kubeconfig,
		"--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=2000")
}

func (p *plane) startKwok(context.Context) error {
	kubeconfig := filepath.Join(p.layout.run(), "kwok.kubeconfig")
	if err := p.writeUser(kubeconfig, "kwok", "system:masters"); err != nil {
		return err
	}
	stages, err := kwokStages()
	if err != nil {
		return err
	}
	path := filepath.Join(p.layout.run(), "stages.yaml")
	if err := os.WriteFile(path, stages, 0o600); err != nil {
		return fmt.Errorf("writing kwok's stages: %w", err)
	}
	return p.start("kwok", "--kubeconfig="+kubeconfig, "--manage-nodes-with-label-selector=!"+ManualNodeLabel, "--config="+path)
}

// start runs one program in a process group of its own, so that Ctrl-C in a terminal reaches only
// the process that owns the cluster and ends it in order.
func (p *plane) start(name string, args ...string) error {
	log, err := p.log(name)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(p.binaries, name), args...) //nolint:noctx // it outlives the start, and is ended in order
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	// Its end is seen through the process table; waiting here keeps it from staying as a zombie.
	go func() { _ = cmd.Wait() }()
	return nil
}

func (p *plane) log(name string) (*os.File, error) {
	f, err := os.Create(filepath.Join(p.layout.logs(), name+".log"))
	if err != nil {
		return nil, fmt.Errorf("creating a log: %w", err)
	}
	return f, nil
}

// embeddedHash changes with everything that a cluster is made from, so that one from an older
// checkout, or of other programs, is replaced and not trusted.
func embeddedHash() (string, error) {
	programs, err := binaries.Set()
	if err != nil {
		return "", err
	}
	return hash(filepath.Base(programs), config.Get("KUBERNETES_VERSION"), config.Get("ETCD_VERSION"), config.Get("KWOK_VERSION"),
		string(auditPolicy), fmt.Sprint(apiServerFlags()), nodeGrace, ManualPodAnnotation, ManualNodeLabel, manualPolicy), nil
}
