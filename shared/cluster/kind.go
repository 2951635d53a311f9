package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	"example.com/workbook/shared/engine"
	"example.com/workbook/shared/step"
)

// markerName is a ConfigMap in kube-system that is written when a kind cluster is complete. One
// without it was interrupted while it was made.
const markerName = "harness"

// kindCluster is a cluster whose nodes are containers.
type kindCluster struct {
	name       string
	engine     *engine.Engine
	provider   *cluster.Provider
	kubeconfig string

	mu sync.Mutex
	// plane is the node of the control plane, once it was found.
	plane nodes.Node
}

func (k *kindCluster) Kind() Kind                  { return KindKind }
func (k *kindCluster) Name() string                { return k.name }
func (k *kindCluster) Context() string             { return ContextName(KindKind, k.name) }
func (k *kindCluster) Kubeconfig() string          { return k.kubeconfig }
func (k *kindCluster) RunsContainers() bool        { return true }
func (k *kindCluster) Close(context.Context) error { return nil }

func (k *kindCluster) RESTConfig() (*rest.Config, error) {
	return restConfig(k.kubeconfig, k.Context())
}

func (k *kindCluster) Nodes(ctx context.Context) ([]Node, error) {
	cfg, err := k.RESTConfig()
	if err != nil {
		return nil, err
	}
	return listNodes(ctx, cfg)
}

// AuditLog reads through the control plane's node; old files, named audit-<time>.log, come first.
func (k *kindCluster) AuditLog(ctx context.Context) (io.ReadCloser, error) {
	node, err := k.controlPlane()
	if err != nil {
		return nil, err
	}
	var text, stderr bytes.Buffer
	err = node.CommandContext(ctx, "sh", "-c", "cat "+auditLogDir+"/audit*.log").SetStdout(&text).SetStderr(&stderr).Run()
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w: %s", err, stderr.String())
	}
	return io.NopCloser(&text), nil
}

// SearchAuditLog implements AuditSearcher.
func (k *kindCluster) SearchAuditLog(ctx context.Context, mark string, texts []string) (io.ReadCloser, error) {
	node, err := k.controlPlane()
	if err != nil {
		return nil, err
	}
	var found, stderr bytes.Buffer
	arguments := append([]string{"-c", searchScript(len(texts)), "sh", mark}, texts...)
	if err := node.CommandContext(ctx, "sh", arguments...).SetStdout(&found).SetStderr(&stderr).Run(); err != nil {
		return nil, fmt.Errorf("searching the audit log: %w: %s", err, stderr.String())
	}
	return io.NopCloser(&found), nil
}

// searchScript prints the lines of the audit log that have the first argument, or all of the n others.
func searchScript(n int) string {
	var script strings.Builder
	fmt.Fprintf(&script, "cat %s/audit*.log", auditLogDir)
	for i := range n {
		fmt.Fprintf(&script, ` | grep -F -e "$1" -e "$%d"`, i+2)
	}
	// grep ends with 1 if there is no such line.
	return script.String() + " || test $? = 1"
}

// machines are the containers of all nodes.
func (k *kindCluster) machines() ([]nodes.Node, error) {
	all, err := k.provider.ListInternalNodes(k.name)
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of %s: %w", k.name, err)
	}
	return all, nil
}

// controlPlane is found once: that takes seven calls of the engine's client, and each search of the audit log needs it.
func (k *kindCluster) controlPlane() (nodes.Node, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.plane != nil {
		return k.plane, nil
	}
	all, err := k.machines()
	if err != nil {
		return nil, err
	}
	node, err := nodeutils.BootstrapControlPlaneNode(all)
	if err != nil {
		return nil, fmt.Errorf("finding the control plane of %s: %w", k.name, err)
	}
	k.plane = node
	return node, nil
}

// newKind makes a handle for a cluster that may or may not exist.
func newKind(ctx context.Context, out io.Writer, name string) (*kindCluster, error) {
	found, err := engine.Find(ctx)
	if err != nil {
		return nil, err
	}
	path, err := KubeconfigPath()
	if err != nil {
		return nil, err
	}
	option := cluster.ProviderWithDocker()
	if found.Name == "podman" {
		option = cluster.ProviderWithPodman()
	}
	provider := cluster.NewProvider(cluster.ProviderWithLogger(logger{out}), option)
	return &kindCluster{name: name, engine: found, provider: provider, kubeconfig: path}, nil
}

// findKind returns the cluster if it is complete, made from the present configuration and node image,
// and is ready. Getting the node image may take long; without image any will do, and the current context stays.
func findKind(ctx context.Context, out io.Writer, name string, image func() (string, error)) (*kindCluster, error) {
	k, err := newKind(ctx, out, name)
	if err != nil {
		return nil, err
	}
	names, err := k.provider.List()
	if err != nil {
		return nil, fmt.Errorf("listing kind clusters: %w", err)
	}
	if !slices.Contains(names, name) {
		return nil, &notUp{}
	}
	if err := k.checkOwn(ctx); err != nil {
		return nil, err
	}
	marker, err := k.check(ctx, image != nil)
	if err != nil || image == nil {
		return k, err
	}
	want, err := image()
	if err != nil {
		return nil, err
	}
	if marker.Data["image"] != want {
		return nil, &notUp{"one that was made with another node image"}
	}
	return k, nil
}

// writeContext has the repository's kubeconfig lead to the cluster, as its current context or beside that. Only what the
// cluster lacks is ErrNotUp.
func (k *kindCluster) writeContext(current bool) error {
	text, err := k.provider.KubeConfig(k.name, false)
	if err != nil {
		return &notUp{"one that has no kubeconfig: it is half-made or stopped"}
	}
	from, err := clientcmd.Load([]byte(text))
	if err != nil {
		return &notUp{"one whose kubeconfig cannot be read: " + err.Error()}
	}
	_, err = addContext(from, current)
	return err
}

// check fails with ErrNotUp if the cluster's containers are not one healthy cluster of the present
// configuration. It returns the marker. current is for writeContext.
func (k *kindCluster) check(ctx context.Context, current bool) (*corev1.ConfigMap, error) {
	if err := k.writeContext(current); err != nil {
		if ctx.Err() != nil { // Ctrl-C reaches the engine's client too
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	if err := checkReady(ctx, k); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &notUp{"one that is not ready: " + err.Error()}
	}
	cfg, err := k.RESTConfig()
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	marker, err := clients.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, markerName, metav1.GetOptions{})
	if err != nil {
		return nil, &notUp{"a half-made one"}
	}
	if marker.Data["hash"] != kindHash() {
		return nil, &notUp{"one that was made with another configuration"}
	}
	return marker, nil
}

// ensureKind uses, replaces or makes a kind cluster.
func ensureKind(ctx context.Context, out io.Writer, o Options) (Cluster, bool, error) {
	getImage := sync.OnceValues(func() (string, error) { return NodeImage(ctx, out) })
	k, err := findKind(ctx, out, o.Name, getImage)
	if err == nil {
		return k, false, nil
	}
	if !errors.Is(err, ErrNotUp) {
		return nil, false, err
	}
	image, imageErr := getImage()
	if imageErr != nil {
		return nil, false, imageErr
	}
	replacing(out, "a kind cluster "+o.Name, err)
	if err := deleteKind(ctx, out, o.Name, true); err != nil {
		return nil, false, err
	}
	if k, err = newKind(ctx, out, o.Name); err != nil {
		return nil, false, err
	}
	err = step.Run(ctx, out, "creating the kind cluster "+o.Name+" (one control plane, two workers)", func(ctx context.Context) error {
		return k.create(ctx, out, image)
	})
	if err != nil {
		// The context may be what ended the creation; cleaning up must not end with it.
		cleanup := context.WithoutCancel(ctx)
		return nil, false, errors.Join(err, deleteKind(cleanup, out, o.Name, true))
	}
	return k, true, nil
}

func newMarker(image string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: markerName, Namespace: metav1.NamespaceSystem},
		Data:       map[string]string{"hash": kindHash(), "image": image},
	}
}
