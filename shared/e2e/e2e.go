// Package e2e sets up what every stage's end-to-end suite needs: a cluster, the stage's images in
// it, its operator running, namespaces for the specs, and artifacts when one fails.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/workbook/shared/artifacts"
	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/config"
	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/image"
	"example.com/workbook/shared/operator"
)

// Stage says what to set up.
type Stage struct {
	// Name of the stage, for messages and artifacts: "02-lolcow".
	Name string
	// Dir is the stage's folder, as seen from the suite's: "../..".
	Dir string
	// Overlay is the folder of the stage's configuration to deploy, for an operator that comes in
	// variants; empty: deploy.DefaultOverlay.
	Overlay string
	// Images maps the names of images in the stage's configuration to targets of its Dockerfile:
	// {"controller": "manager", "lolcow": "lolcow"}. Nil: what image.Targets finds, the same here.
	Images map[string]string
	// AddToScheme adds the stage's kinds to those that Env.Client knows besides Kubernetes' own.
	AddToScheme []func(*runtime.Scheme) error
	// OperatorArgs follow the arguments of the manifest, and win over them.
	OperatorArgs []string
	// Prepare makes what the specs need besides, such as an image or a program, once for all processes of the suite,
	// and says where it is; nil: nothing.
	Prepare func(ctx context.Context, env *Env) (prepared string, err error)
}

// ShortLease are arguments for an operator whose specs wait for the lease of one that was killed: it runs out after
// LeaseDuration and not after 15 seconds.
var ShortLease = []string{
	"--leader-elect-lease-duration=" + LeaseDuration.String(), "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=1s",
}

// LeaseDuration is that of ShortLease.
const LeaseDuration = 9 * time.Second

// variant tells a variant of the operator from the stage's own, in names of folders and in messages:
// "-managed", or nothing.
func (s Stage) variant() string {
	if s.Overlay == "" || s.Overlay == deploy.DefaultOverlay {
		return ""
	}
	return "-" + s.Overlay
}

// Env is what a suite works with.
type Env struct {
	Stage   Stage
	Cluster cluster.Cluster
	// Config and Client act as the cluster's administrator. The client reads from the API server,
	// not from a cache.
	Config *rest.Config
	Client client.WithWatch
	// Operator is the stage's operator, running.
	Operator operator.Operator
	// Images maps the names of the stage's images ("controller", "lolcow") to references. Where no
	// containers run, nothing is built, and the references are only names.
	Images deploy.Images
	// Artifacts is the folder for what a failed spec leaves, and for what specs want to keep.
	Artifacts string
	// Prepared is what Stage.Prepare returned.
	Prepared string

	started time.Time
	out     io.Writer
	cleanup []func(context.Context) error
	// namespaces are those of the present spec.
	namespaces []string
}

// Setup takes the lock on the cluster, makes the cluster or uses the one that is there, builds and
// loads the images, deploys the operator (on an embedded cluster: starts it as a process) and waits
// until it is ready. Each step is printed to out with the time it took. After an error nothing is
// left that Setup started for itself.
func Setup(ctx context.Context, out io.Writer, stage Stage) (*Env, error) {
	env := &Env{Stage: stage, started: time.Now(), out: out}
	for _, step := range []func(context.Context) error{
		env.setupCluster, env.setupClient, env.setupArtifacts, env.setupOperator, env.prepare,
	} {
		if err := step(ctx); err != nil {
			cleanup := context.WithoutCancel(ctx)
			env.dumpSetup(cleanup)
			return nil, errors.Join(config.Explain(err), env.Close(cleanup))
		}
	}
	fmt.Fprintf(out, "==> %s is ready for its specs after %s\n", stage.Name+stage.variant(), time.Since(env.started).Round(100*time.Millisecond))
	return env, nil
}

// dumpSetup keeps what is available of the operator's namespace if the operator did not start.
func (e *Env) dumpSetup(ctx context.Context) {
	objects, err := deploy.Render(e.Stage.Dir, e.Stage.Overlay, nil)
	if err != nil || e.Artifacts == "" {
		return // Setup's own error tells
	}
	ctx, cancel := context.WithTimeout(ctx, dumpTimeout)
	defer cancel()
	for _, object := range objects {
		if object.GetKind() != "Namespace" {
			continue
		}
		dir := filepath.Join(e.Artifacts, "setup")
		if err := artifacts.Dump(ctx, e.Cluster, dir, object.GetName()); err != nil {
			fmt.Fprintf(e.out, "==> not everything could be kept: %v\n", err)
		}
		fmt.Fprintf(e.out, "==> objects, events and logs are in %s\n", dir)
	}
}

// Close stops an operator that is a local process, ends a cluster that Setup started for itself,
// and releases the lock. A kind cluster stays up for the next run.
func (e *Env) Close(ctx context.Context) error {
	var errs []error
	for _, clean := range slices.Backward(e.cleanup) {
		errs = append(errs, clean(ctx))
	}
	e.cleanup = nil
	return errors.Join(errs...)
}

func (e *Env) setupCluster(ctx context.Context) error {
	unlock, err := cluster.Lock(ctx, e.out, "", e.Stage.Name+e.Stage.variant()+" e2e")
	if err != nil {
		return err
	}
	e.cleanup = append(e.cleanup, func(context.Context) error { unlock(); return nil })

	c, created, err := cluster.Ensure(ctx, e.out, cluster.Options{})
	if err != nil {
		return err
	}
	e.Cluster = c
	if !created {
		fmt.Fprintf(e.out, "==> using the %s cluster %s that is up\n", c.Kind(), c.Name())
	}
	e.cleanup = append(e.cleanup, func(ctx context.Context) error {
		if c.Kind() == cluster.KindKind {
			fmt.Fprintf(e.out, "==> the kind cluster %s stays up for the next run; `make cluster-delete` ends it\n", c.Name())
		}
		return c.Close(ctx)
	})
	return nil
}

func (e *Env) setupClient(context.Context) error {
	// controller-runtime complains, half a minute later, if no logger is set; the client has
	// nothing to say.
	ctrllog.SetLogger(logr.Discard())
	cfg, err := e.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme}, e.Stage.AddToScheme...) {
		if err := add(scheme); err != nil {
			return fmt.Errorf("adding kinds to the scheme: %w", err)
		}
	}
	e.Config = cfg
	if e.Client, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return nil
}

// setupArtifacts empties the suite's folder: what is in it is of this run. A suite on a cluster of another name than the
// project's may run beside this one.
func (e *Env) setupArtifacts(context.Context) error {
	folder := string(e.Cluster.Kind()) + e.Stage.variant()
	if name := e.Cluster.Name(); name != config.Project() {
		folder += "." + name
	}
	dir, err := artifacts.Dir(e.Stage.Name, folder)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return fmt.Errorf("preparing the folder for artifacts: %w", err)
	}
	e.Artifacts = dir
	return nil
}

// setupOperator deploys the operator from its image where containers run, and starts it as a
// process of this machine elsewhere.
func (e *Env) setupOperator(ctx context.Context) error {
	// First, because the API server needs a while to take objects of a new kind for owners: the
	// images are built meanwhile. Not if CRDs are being deleted and only the operator can release their objects.
	if err := e.install(ctx); err != nil {
		return err
	}
	images, err := image.ForStage(ctx, e.out, e.Cluster, e.Stage.Dir, e.Stage.Images)
	if err != nil {
		return err
	}
	e.Images = images
	if e.Cluster.RunsContainers() {
		objects, err := e.Render(e.Images)
		if err != nil {
			return err
		}
		if err := deploy.Deploy(ctx, e.out, e.Config, objects); err != nil {
			return err
		}
		e.Operator, err = operator.InCluster(e.Cluster, e.Stage.Dir, e.Stage.Overlay)
		return err
	}
	process, err := operator.Run(ctx, e.out, operator.Options{
		Cluster: e.Cluster, StageDir: e.Stage.Dir, Overlay: e.Stage.Overlay, Images: e.Images,
		Log: e.operatorLog(), Args: e.Stage.OperatorArgs,
	})
	if err != nil {
		return err
	}
	e.Operator = process
	e.cleanup = append(e.cleanup, process.Close)
	return nil
}

func (e *Env) install(ctx context.Context) error {
	crds, err := deploy.Render(e.Stage.Dir, "crd", nil)
	if err != nil {
		return err
	}
	held, err := deploy.Held(ctx, e.Config, crds)
	if err != nil || len(held) > 0 {
		return err
	}
	return deploy.Install(ctx, e.out, e.Config, e.Stage.Dir)
}

// Render returns the stage's objects as the suite deploys them, with OperatorArgs and then more arguments: for specs that
// deploy the operator again.
func (e *Env) Render(images deploy.Images, args ...string) ([]*unstructured.Unstructured, error) {
	objects, err := deploy.Render(e.Stage.Dir, e.Stage.Overlay, images)
	if err != nil {
		return nil, err
	}
	return objects, operator.AddArgs(objects, slices.Concat(e.Stage.OperatorArgs, args)...)
}

// operatorLog is where an operator that is a process of this machine writes its log.
func (e *Env) operatorLog() string { return filepath.Join(e.Artifacts, "operator.log") }

func (e *Env) prepare(ctx context.Context) (err error) {
	if e.Stage.Prepare != nil {
		e.Prepared, err = e.Stage.Prepare(ctx, e)
	}
	return err
}
