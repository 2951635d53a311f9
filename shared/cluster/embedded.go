package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"example.com/workbook/shared/binaries"
	"example.com/workbook/shared/config"
	"example.com/workbook/shared/proc"
	"example.com/workbook/shared/step"
)

// embedded is a control plane of local processes, started by this process or another.
type embedded struct {
	name       string
	kubeconfig string
	layout     layout
	// own is set if the processes are to end with this one.
	own bool
}

func (e *embedded) Kind() Kind           { return KindEmbedded }
func (e *embedded) Name() string         { return e.name }
func (e *embedded) Context() string      { return ContextName(KindEmbedded, e.name) }
func (e *embedded) Kubeconfig() string   { return e.kubeconfig }
func (e *embedded) RunsContainers() bool { return false }

func (e *embedded) RESTConfig() (*rest.Config, error) {
	return restConfig(e.kubeconfig, e.Context())
}

func (e *embedded) Nodes(ctx context.Context) ([]Node, error) {
	cfg, err := e.RESTConfig()
	if err != nil {
		return nil, err
	}
	return listNodes(ctx, cfg)
}

func (e *embedded) LoadImages(context.Context, ...string) (bool, error) {
	return false, errors.New("an embedded cluster runs no containers: it has no use for images")
}

// AuditLog joins the files that the API server rotated away and the present one, oldest first.
func (e *embedded) AuditLog(context.Context) (io.ReadCloser, error) {
	dir := filepath.Dir(e.layout.auditLog())
	entries, err := os.ReadDir(dir) // sorted: audit-<time>.log comes before audit.log
	var readers []io.Reader
	var closers multiCloser
	for _, entry := range entries {
		if ok, _ := filepath.Match("audit*.log", entry.Name()); !ok {
			continue
		}
		f, err := os.Open(filepath.Join(dir, entry.Name()))
		if err != nil {
			_ = closers.Close()
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		readers = append(readers, f)
		closers = append(closers, f)
	}
	if len(closers) == 0 {
		return nil, fmt.Errorf("reading the audit log: none in %s (%w)", dir, errors.Join(err, os.ErrNotExist))
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(readers...), closers}, nil
}

type multiCloser []io.Closer

func (m multiCloser) Close() error {
	var errs []error
	for _, c := range m {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func (e *embedded) Close(ctx context.Context) error {
	if !e.own {
		return nil
	}
	return endEmbedded(ctx, io.Discard, e.name)
}

// findEmbedded returns the cluster if it is complete, all its processes run and it is ready. current says whether its
// context becomes the current one.
func findEmbedded(ctx context.Context, name string, current bool) (*embedded, error) {
	l, err := embeddedLayout(name)
	if err != nil {
		return nil, err
	}
	s, err := l.read()
	if err != nil {
		return nil, &notUp{"a state that cannot be read: " + err.Error()}
	}
	if s == nil {
		return nil, &notUp{}
	}
	hash, err := embeddedHash()
	if err != nil {
		return nil, err
	}
	dead := slices.DeleteFunc(append([]proc.Process{s.Owner}, s.Processes...), func(p proc.Process) bool { return p.Alive(ctx) })
	switch {
	case ctx.Err() != nil: // where the process table is read by another program, all seem to be dead
		return nil, context.Cause(ctx)
	case !s.Ready:
		return nil, &notUp{"one that was never completed"}
	case len(dead) == len(s.Processes)+1:
		return nil, &notUp{"the remains of one whose processes are all gone"}
	case slices.Contains(dead, s.Owner):
		return nil, &notUp{fmt.Sprintf("%d processes of one whose owner (pid %d) was killed", len(s.Processes)+1-len(dead), s.Owner.PID)}
	case len(dead) > 0:
		return nil, &notUp{fmt.Sprintf("one that lost %s (pid %d)", dead[0].Name, dead[0].PID)}
	case s.Hash != hash:
		return nil, &notUp{"one that was made with another version or configuration"}
	}

	e := &embedded{name: name, layout: l}
	from, err := clientcmd.LoadFromFile(l.kubeconfig())
	if err != nil {
		return nil, &notUp{"one whose kubeconfig cannot be read: " + err.Error()}
	}
	if e.kubeconfig, err = addContext(from, current); err != nil {
		return nil, err
	}
	if err := checkReady(ctx, e); err != nil {
		if ctx.Err() != nil { // Ctrl-C is no sign of a cluster that has to be replaced
			return nil, context.Cause(ctx)
		}
		return nil, &notUp{"one that is not ready: " + err.Error()}
	}
	return e, nil
}

// ensureEmbedded uses, repairs or makes an embedded cluster.
func ensureEmbedded(ctx context.Context, out io.Writer, o Options) (Cluster, bool, error) {
	e, err := findEmbedded(ctx, o.Name, true)
	if err == nil {
		return e, false, nil
	}
	if !errors.Is(err, ErrNotUp) {
		return nil, false, err
	}
	replacing(out, "an embedded cluster "+o.Name, err)
	if err := endEmbedded(ctx, out, o.Name); err != nil {
		return nil, false, err
	}
	// Before anything is timed or detached: this may take minutes, once.
	dir, err := binaries.Ensure(ctx, out, componentNames...)
	if err != nil {
		return nil, false, err
	}
	warnOfVersion(ctx, out, dir)

	err = step.Run(ctx, out, "starting the embedded cluster "+o.Name, func(ctx context.Context) error {
		if len(o.Supervisor) > 0 {
			return startSupervisor(ctx, out, o)
		}
		return startEmbedded(ctx, out, o.Name)
	})
	if err != nil {
		// The context may be what ended the start; cleaning up must not end with it.
		cleanup := context.WithoutCancel(ctx)
		return nil, false, errors.Join(err, endEmbedded(cleanup, out, o.Name))
	}
	if e, err = findEmbedded(ctx, o.Name, true); err != nil {
		return nil, false, fmt.Errorf("starting the embedded cluster %s: %w", o.Name, err)
	}
	e.own = len(o.Supervisor) == 0
	return e, true, nil
}

// warnOfVersion prints a warning if the API server has another version than the harness expects: one in KUBEBUILDER_ASSETS may
// have any.
func warnOfVersion(ctx context.Context, out io.Writer, dir string) {
	output, err := exec.CommandContext(ctx, filepath.Join(dir, "kube-apiserver"), "--version").Output()
	found, want := strings.TrimSpace(string(output)), "Kubernetes "+config.Get("KUBERNETES_VERSION")
	if err == nil && found != want {
		fmt.Fprintf(out, "==> the API server in KUBEBUILDER_ASSETS is %s, and the harness is made for %s: unset KUBEBUILDER_ASSETS for that one\n", found, want)
	}
}

// endEmbedded ends the owner that the state on disk names and all processes that work in the cluster's folder, and removes that
// state.
func endEmbedded(ctx context.Context, out io.Writer, name string) error {
	l, err := embeddedLayout(name)
	if err != nil {
		return err
	}
	s, err := l.read()
	if err != nil {
		// The file is in the way of a new start.
		fmt.Fprintf(out, "==> removing %s: %v\n", l.state(), err)
	}
	if s == nil {
		s = &state{}
	}
	return errors.Join(l.clear(ctx, out, s), removeContext(ContextName(KindEmbedded, name)))
}

func deleteEmbedded(ctx context.Context, out io.Writer, name string) error {
	l, err := embeddedLayout(name)
	if err != nil {
		return err
	}
	if _, err := os.Stat(l.dir); errors.Is(err, os.ErrNotExist) && len(l.remains(ctx)) == 0 {
		return nil
	}
	return step.Run(ctx, out, "ending the embedded cluster "+name, func(ctx context.Context) error {
		if err := endEmbedded(ctx, out, name); err != nil {
			return err
		}
		return os.RemoveAll(l.dir)
	})
}

// checkReady returns an error if the API server is not ready, or does not respond in time.
func checkReady(ctx context.Context, c Cluster) error {
	cfg, err := c.RESTConfig()
	if err != nil {
		return err
	}
	cfg.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	_, err = client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err
}

// listNodes returns the nodes that take pods without a toleration, by name.
func listNodes(ctx context.Context, cfg *rest.Config) ([]Node, error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	var out []Node
	for _, node := range list.Items {
		if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoSchedule }) {
			continue
		}
		n := Node{Name: node.Name}
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP && n.Address == "" {
				n.Address = address.Address
			}
		}
		out = append(out, n)
	}
	return out, nil
}

// kubeconfigFor turns a REST configuration with inline credentials into a kubeconfig.
func kubeconfigFor(context string, cfg *rest.Config) *api.Config {
	c := api.NewConfig()
	c.Clusters[context] = &api.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	c.AuthInfos[context] = &api.AuthInfo{
		ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData, Token: cfg.BearerToken,
	}
	c.Contexts[context] = &api.Context{Cluster: context, AuthInfo: context}
	c.CurrentContext = context
	return c
}
