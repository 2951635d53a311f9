// Package cluster brings up the clusters that the workbook's tests and examples run on, finds the
// ones that are up already, and ends them. There are two kinds behind one interface: kind, which
// runs containers, and embedded, which needs no container engine and only pretends to run them.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/rest"

	"example.com/workbook/shared/engine"
)

// Kind is a way to have a cluster.
type Kind string

const (
	// KindKind is a cluster of containers made by kind: pods really run.
	KindKind Kind = "kind"
	// KindEmbedded is a control plane of local processes, with nodes and pods that are simulated.
	KindEmbedded Kind = "embedded"
	// KindForeign is a cluster that the harness did not make and was told to use by ALLOW_CONTEXT.
	KindForeign Kind = "foreign"
)

// Node is one machine of a cluster.
type Node struct {
	Name string
	// Address is the node's IP in the network of the cluster.
	Address string
}

// Cluster is a cluster that answers.
type Cluster interface {
	Kind() Kind
	// Name is the cluster's name without the kind's prefix, as in CLUSTER_NAME.
	Name() string
	// Context is the name of the cluster's entry in Kubeconfig.
	Context() string
	// Kubeconfig is the path of a file in which Context leads to the cluster as its administrator.
	Kubeconfig() string
	// RESTConfig leads to the cluster as its administrator.
	RESTConfig() (*rest.Config, error)
	// RunsContainers tells whether pods are more than objects here: logs, HTTP, images.
	RunsContainers() bool
	// Nodes are the nodes that can run pods of users.
	Nodes(ctx context.Context) ([]Node, error)
	// LoadImages copies images of the container engine into every node that lacks one, and tells
	// whether any did. It fails where RunsContainers is false.
	LoadImages(ctx context.Context, refs ...string) (loaded bool, err error)
	// AuditLog is what the API server wrote so far: one audit.k8s.io/v1 Event in JSON per line.
	AuditLog(ctx context.Context) (io.ReadCloser, error)
	// Close ends what this process started only for itself. A cluster that was found, or was asked
	// to outlive this process, stays.
	Close(ctx context.Context) error
}

// Options say what Ensure shall do if it has to make the cluster.
type Options struct {
	// Kind of the cluster. Empty: what Choose says.
	Kind Kind
	// Name of the cluster. Empty: what Name says.
	Name string
	// Supervisor is the command that runs Serve for an embedded cluster which is to outlive this
	// process; it gets the environment CLUSTER_NAME. Empty: the cluster ends with Close.
	Supervisor []string
}

// Choose says which kind of cluster to use: what CLUSTER asks for, else kind if a container engine
// answers, else embedded. It fails for another value, and for CLUSTER=kind without an engine.
func Choose(ctx context.Context) (Kind, error) {
	return choose(os.Getenv("CLUSTER"), func() error {
		_, err := engine.Find(ctx)
		return err
	})
}

func choose(wish string, findEngine func() error) (Kind, error) {
	switch Kind(wish) {
	case KindEmbedded:
		return KindEmbedded, nil
	case KindKind:
		if err := findEngine(); err != nil {
			return "", fmt.Errorf("CLUSTER=kind cannot be done: %w", err)
		}
		return KindKind, nil
	case "":
		err := findEngine()
		if errors.Is(err, engine.ErrNone) {
			return KindEmbedded, nil
		}
		return KindKind, err
	default:
		return "", fmt.Errorf("CLUSTER=%s is unknown: use kind, embedded, or leave it out", wish)
	}
}

// Ensure returns a cluster that is complete and answers. One that is there and healthy is used as
// it is; one that is half-made, does not answer or was made from another configuration is replaced,
// after saying so. Progress goes to out. The caller holds the lock (see Lock).
func Ensure(ctx context.Context, out io.Writer, o Options) (c Cluster, created bool, err error) {
	if o, err = o.complete(ctx); err != nil {
		return nil, false, err
	}
	if o.Kind == KindEmbedded {
		return ensureEmbedded(ctx, out, o)
	}
	return ensureKind(ctx, out, o)
}

// Find returns the cluster that is there and healthy, and ErrNotUp if none is. It does not look at the
// node image, which may take minutes to get; Ensure does.
func Find(ctx context.Context, o Options) (Cluster, error) {
	o, err := o.complete(ctx)
	if err != nil {
		return nil, err
	}
	if o.Kind == KindEmbedded {
		return findEmbedded(ctx, o.Name)
	}
	return findKind(ctx, io.Discard, o.Name, nil)
}

// Delete ends everything of both kinds that has this name: containers, processes, state, and the
// entries in the kubeconfig. It says what it ends and is content if there is nothing.
func Delete(ctx context.Context, out io.Writer, name string) error {
	if name == "" {
		name = Name()
	}
	if err := checkName(name); err != nil {
		return err
	}
	return errors.Join(deleteKind(ctx, out, name), deleteEmbedded(ctx, out, name))
}

func (o Options) complete(ctx context.Context) (Options, error) {
	if o.Name == "" {
		o.Name = Name()
	}
	if err := checkName(o.Name); err != nil {
		return o, err
	}
	if o.Kind == "" {
		kind, err := Choose(ctx)
		if err != nil {
			return o, err
		}
		o.Kind = kind
	}
	return o, nil
}

// ErrNotUp means that there is no such cluster, or none that can be used as it is.
var ErrNotUp = errors.New("the cluster is not up")

// notUp is ErrNotUp with what was found instead. An empty finding means nothing at all.
type notUp struct{ finding string }

func (e *notUp) Error() string {
	if e.finding == "" {
		return ErrNotUp.Error()
	}
	return e.finding
}

func (e *notUp) Is(target error) bool { return target == ErrNotUp }

// replacing says what was found where a healthy cluster should be. Nothing found, nothing said.
func replacing(out io.Writer, what string, err error) {
	var found *notUp
	if errors.As(err, &found) && found.finding != "" {
		fmt.Fprintf(out, "==> found %s: %s; replacing it\n", what, found.finding)
	}
}
