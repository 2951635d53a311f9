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

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/engine"
)

// Kind is a way to have a cluster.
type Kind string

const (
	// KindKind is a cluster of containers made by kind: pods really run.
	KindKind Kind = "kind"
	// KindEmbedded is a control plane of local processes, with nodes and pods that are simulated.
	KindEmbedded Kind = "embedded"
	// KindExternal is a cluster that the harness did not make and was told to use by ALLOW_CONTEXT.
	KindExternal Kind = "external"
)

// Node is one machine of a cluster.
type Node struct {
	Name string
	// Address is the node's IP in the network of the cluster.
	Address string
}

// Cluster is a cluster that is ready.
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
	// RunsContainers reports whether pods are more than objects here: logs, HTTP, images.
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

// AuditSearcher is a Cluster whose audit log is searched where it is: it may be hundreds of megabytes.
type AuditSearcher interface {
	// SearchAuditLog opens the lines of the audit log that have the mark, or all of the texts, in their order.
	SearchAuditLog(ctx context.Context, mark string, texts []string) (io.ReadCloser, error)
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

// Choose says which kind of cluster to use for a name (empty: what Name says): what CLUSTER asks for, else
// embedded if only that one is up, else kind if a container engine answers, else embedded. It fails for another
// value, for CLUSTER=kind without an engine, and where an engine is there that this user may not use.
func Choose(ctx context.Context, name string) (Kind, error) {
	findEngine := func() error {
		_, err := engine.Find(ctx)
		return err
	}
	isUp := func(kind Kind) bool {
		_, err := Find(ctx, Options{Kind: kind, Name: name})
		return err == nil
	}
	return choose(os.Getenv("CLUSTER"), findEngine, isUp)
}

func choose(wish string, findEngine func() error, isUp func(Kind) bool) (Kind, error) {
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
		// One that was brought up by hand is meant by what follows: a second cluster would be a surprise.
		if errors.Is(err, engine.ErrNone) || err == nil && isUp(KindEmbedded) && !isUp(KindKind) {
			return KindEmbedded, nil
		}
		return KindKind, err
	default:
		return "", unknownKind(Kind(wish))
	}
}

func unknownKind(wish Kind) error {
	return fmt.Errorf("CLUSTER=%s is unknown: use kind, embedded, or leave it out", wish)
}

// Ensure returns a cluster that is complete and ready. One that is there and healthy is used as
// it is; one that is half-made, not ready or made from another configuration is replaced,
// after saying so. It fails for a kind cluster that the harness did not make. Progress goes to out. The caller holds the
// lock (see Lock).
func Ensure(ctx context.Context, out io.Writer, o Options) (c Cluster, created bool, err error) {
	if o, err = o.complete(ctx); err != nil {
		return nil, false, err
	}
	if o.Kind == KindEmbedded {
		return ensureEmbedded(ctx, out, o)
	}
	return ensureKind(ctx, out, o)
}

// Use returns the cluster that Ensure would use as it is, and ErrNotUp where Ensure would make or replace one. The caller
// shares it (see Share).
func Use(ctx context.Context, out io.Writer, o Options) (Cluster, error) {
	o, err := o.complete(ctx)
	if err != nil {
		return nil, err
	}
	if o.Kind == KindEmbedded {
		e, err := findEmbedded(ctx, o.Name, true)
		if err != nil {
			return nil, err
		}
		return e, nil
	}
	k, err := findKind(ctx, out, o.Name, func() (string, error) { return NodeImage(ctx, out) })
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Find returns the cluster that is there and healthy, and ErrNotUp if none is. Unlike Ensure it
// neither looks at the node image, which may take minutes to get, nor changes the current context.
func Find(ctx context.Context, o Options) (Cluster, error) {
	o, err := o.complete(ctx)
	if err != nil {
		return nil, err
	}
	if o.Kind == KindEmbedded {
		return findEmbedded(ctx, o.Name, false)
	}
	return findKind(ctx, io.Discard, o.Name, nil)
}

// Delete ends everything that has this name, of both kinds or of the one that CLUSTER asks for: containers, processes,
// state, and the entries in the kubeconfig. It says what it ends and is content if there is nothing. It fails for a kind
// cluster that the harness did not make, and where one was made and no engine can be asked for it.
func Delete(ctx context.Context, out io.Writer, name string) error {
	if name == "" {
		name = config.ClusterName()
	}
	if err := checkName(name); err != nil {
		return err
	}
	wish := Kind(os.Getenv("CLUSTER"))
	switch wish {
	case "":
		return errors.Join(deleteKind(ctx, out, name, false), deleteEmbedded(ctx, out, name))
	case KindKind:
		return deleteKind(ctx, out, name, true)
	case KindEmbedded:
		return deleteEmbedded(ctx, out, name)
	default:
		return unknownKind(wish)
	}
}

func (o Options) complete(ctx context.Context) (Options, error) {
	if o.Name == "" {
		o.Name = config.ClusterName()
	}
	if err := checkName(o.Name); err != nil {
		return o, err
	}
	if o.Kind == "" {
		kind, err := Choose(ctx, o.Name)
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
