package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	toyLabel     = "toy.example.com/parent"
	toyFinalizer = "toy.example.com/finalizer"
	toySize      = "toy.example.com/size"
)

// toy is an operator: each ConfigMap with its label gets a ServiceAccount that says its size, and says itself when it has.
// It has a bug if it is given the name of one.
type toy struct {
	bug string

	mu    sync.Mutex
	errs  []error
	sizes []string // of the parents, as they were read
	times []time.Time
}

type toyReconciler struct {
	client.Client
	*toy
	env    Env
	begun  bool
	starts int64
}

var toyStarts atomic.Int64

func (o *toy) setup(_ context.Context, mgr ctrl.Manager, env Env) error {
	r := &toyReconciler{Client: mgr.GetClient(), toy: o, env: env, starts: toyStarts.Add(1)}
	parents := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetLabels()[toyLabel] != "" })
	return ctrl.NewControllerManagedBy(mgr).Named("toy").For(&corev1.ConfigMap{}, builder.WithPredicates(parents)).
		Owns(&corev1.ServiceAccount{}).WithOptions(env.Queue).Complete(r)
}

func (r *toyReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	err := r.reconcile(ctx, req)
	r.mu.Lock()
	r.errs = append(r.errs, err)
	r.times = append(r.times, r.env.Clock.Now())
	r.mu.Unlock()
	switch {
	case r.bug == "swallows conflicts" && apierrors.IsConflict(err):
		return ctrl.Result{}, nil
	case r.bug == "keeps the failure" && apierrors.IsForbidden(err):
		parent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: req.Name, Namespace: req.Namespace}}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"failure":"it was forbidden"}}`))
		return ctrl.Result{}, errors.Join(err, r.Patch(ctx, parent, patch))
	case r.bug == "hangs" && apierrors.IsTimeout(err):
		<-time.After(stepLimit + 10*time.Second)
	}
	return ctrl.Result{}, err
}

func (r *toyReconciler) reconcile(ctx context.Context, req ctrl.Request) error {
	var parent corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &parent); err != nil {
		return client.IgnoreNotFound(err)
	}
	size := parent.Data["size"]
	r.mu.Lock()
	r.sizes = append(r.sizes, size)
	r.mu.Unlock()
	if !parent.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, &parent)
	}
	child := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: req.Name, Namespace: req.Namespace}}
	if r.bug == "creates twice" {
		child.Name = parent.Data["child"]
	}
	err := r.Get(ctx, client.ObjectKeyFromObject(child), child)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && r.bug == "begins again" && parent.Data["status"] == "" {
		return r.Delete(ctx, child)
	}
	if err == nil && !metav1.IsControlledBy(child, &parent) && r.bug != "adopts" {
		return nil
	}
	if err := r.ensure(ctx, &parent, child, size, err != nil); err != nil {
		return err
	}
	if parent.Data["status"] == size {
		return nil
	}
	parent.Data["status"] = size
	if err := r.Update(ctx, &parent); err != nil {
		return err
	}
	r.env.Recorder.Eventf(&parent, nil, corev1.EventTypeNormal, "Sized", "Size", "its size is %s", size)
	return nil
}

func (r *toyReconciler) ensure(ctx context.Context, parent *corev1.ConfigMap, child *corev1.ServiceAccount, size string, missing bool) error {
	wanted := map[string]string{toySize: size}
	if r.bug == "counts starts" && !r.begun {
		wanted["starts"] = fmt.Sprint(r.starts)
	}
	r.begun = true
	if r.bug == "is never done" {
		wanted["now"] = fmt.Sprint(time.Now().UnixNano())
	}
	same := true
	for key, value := range wanted {
		same = same && child.Annotations[key] == value
	}
	if same && !missing {
		return nil
	}
	child.Annotations = wanted
	if r.bug == "chatters" {
		for range 40 {
			r.env.Recorder.Eventf(parent, nil, corev1.EventTypeNormal, "Trying", "Size", "it tries")
		}
	}
	if !missing {
		return r.Update(ctx, child)
	}
	if err := controllerutil.SetControllerReference(parent, child, r.Scheme()); err != nil {
		return err
	}
	if r.bug == "creates twice" {
		child.GenerateName = parent.Name + "-"
	}
	err := r.Create(ctx, child)
	if r.bug == "creates twice" {
		parent.Data["child"] = child.Name
	}
	return err
}

func (r *toyReconciler) finalize(ctx context.Context, parent *corev1.ConfigMap) error {
	if !controllerutil.RemoveFinalizer(parent, toyFinalizer) {
		return nil
	}
	err := r.Update(ctx, parent)
	if r.bug == "tries once to finalize" {
		return nil
	}
	return err
}

// suite is a story for the toy: one parent grows, another one goes.
func (o *toy) suite() Suite {
	parent := func(name string, finalizers ...string) func(context.Context, *State) error {
		return func(ctx context.Context, s *State) error {
			return s.Client.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: map[string]string{toyLabel: "yes"}, Finalizers: finalizers},
				Data:       map[string]string{"size": "1"},
			})
		}
	}
	return Suite{
		Operator: Operator{Scheme: clientgoscheme.Scheme, Cache: cache.Options{}, ReadYourWrites: true, Setup: o.setup},
		Kinds:    []client.Object{&corev1.ConfigMap{}, &corev1.ServiceAccount{}},
		Once:     []client.Object{&corev1.ServiceAccount{}},
		Story: []Op{
			{"create a", parent("a")},
			{"grow a", func(ctx context.Context, s *State) error {
				return Change(ctx, s, "a", func(p *corev1.ConfigMap) { p.Data["size"] = "2" })
			}},
			{"create b", parent("b", toyFinalizer)},
			{"delete b", func(ctx context.Context, s *State) error {
				return s.Client.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: s.Namespace}})
			}},
		},
		Anytime: []Op{
			{"take a's name", func(ctx context.Context, s *State) error {
				return s.Client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: s.Namespace}})
			}},
			{"touch both", func(ctx context.Context, s *State) error {
				touch := func(p *corev1.ConfigMap) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "touched", "yes") }
				return errors.Join(Change(ctx, s, "a", touch), Change(ctx, s, "b", touch))
			}},
		},
		Invariants: []Invariant{
			{"one child for each parent", func(_ context.Context, s *State) error {
				children, err := All[corev1.ServiceAccount](s)
				if err != nil {
					return err
				}
				owners := map[string]int{}
				for _, child := range children {
					for _, owner := range child.OwnerReferences {
						if owners[string(owner.UID)]++; owners[string(owner.UID)] > 1 {
							return fmt.Errorf("%s has a second child", owner.Name)
						}
					}
				}
				return nil
			}},
			Owned(&corev1.ConfigMap{}),
		},
	}
}

// seen reports whether a reconciliation ended with such an error, and how often.
func (o *toy) seen(is func(error) bool) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(o.errs), func(err error) bool { return err == nil || !is(err) }))
}
