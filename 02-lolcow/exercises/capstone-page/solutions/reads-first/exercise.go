package page

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
)

const finalizer = "page.example.com/dns"

// Setup adds the controller to a manager, and its metric to a registry. Its permissions are in role.yaml.
func Setup(mgr ctrl.Manager, dns pages.DNS, registry prometheus.Registerer) error {
	r := &reconciler{
		Client: mgr.GetClient(), live: mgr.GetAPIReader(), dns: dns, recorder: mgr.GetEventRecorder("page"),
		ready: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: pages.Metric, Help: "Whether a Page is ready."}, []string{"namespace", "name"}),
	}
	if err := registry.Register(r.ready); err != nil {
		return err
	}
	// By name, and not by owner: when an object that is in the way is deleted, the Page gets its own.
	byName := &handler.EnqueueRequestForObject{}
	return ctrl.NewControllerManagedBy(mgr).For(&pages.Page{}).
		Watches(&corev1.ConfigMap{}, byName).Watches(&appsv1.Deployment{}, byName).Watches(&corev1.Service{}, byName).
		Complete(r)
}

type reconciler struct {
	client.Client
	// live reads from the API server.
	live     client.Reader
	dns      pages.DNS
	recorder events.EventRecorder
	ready    *prometheus.GaugeVec
}

// errBehind is what comes of a cache that does not have yet what the API server has. Trying again helps.
var errBehind = errors.New("the cache is behind")

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	page := &pages.Page{}
	if err := r.Get(ctx, req.NamespacedName, page); err != nil {
		r.ready.DeleteLabelValues(req.Namespace, req.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !page.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, page)
	}
	before := page.DeepCopy()
	if controllerutil.AddFinalizer(page, finalizer) {
		if err := r.Patch(ctx, page, lock(before)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	deployment, conflict, err := r.ensure(ctx, page)
	if err != nil {
		return ctrl.Result{}, err
	}
	recordErr := r.record(ctx, page)
	if errors.Is(recordErr, errBehind) {
		return ctrl.Result{}, nil
	}
	if err := r.report(ctx, page, outcome(deployment, conflict, recordErr)); err != nil {
		return ctrl.Result{}, err
	}
	if errors.Is(recordErr, pages.ErrTaken) {
		return ctrl.Result{RequeueAfter: takenPause}, nil
	}
	return ctrl.Result{}, recordErr
}

// ensure writes the objects of a Page. It returns its Deployment, or what is in the way.
func (r *reconciler) ensure(ctx context.Context, page *pages.Page) (*appsv1.Deployment, string, error) {
	config, deployment, service := wanted(page)
	conflict := ""
	for _, one := range []desired{config, deployment, service} {
		found, err := r.write(ctx, page, one)
		if err != nil {
			return nil, "", err
		}
		if !found && conflict == "" {
			conflict = one.kind + " " + page.Name + " is not controlled by this Page"
		}
	}
	return deployment.object.(*appsv1.Deployment), conflict, nil
}

// write creates an object, or corrects it. It returns false if the Page does not control it.
func (r *reconciler) write(ctx context.Context, page *pages.Page, one desired) (bool, error) {
	object, key := one.object, client.ObjectKeyFromObject(page)
	err := r.Get(ctx, key, object)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	if err != nil {
		object.SetName(page.Name)
		object.SetNamespace(page.Namespace)
		one.set()
		if err := controllerutil.SetControllerReference(page, object, r.Scheme()); err != nil {
			return false, err
		}
		// AlreadyExists: a user has taken the name, or the cache is behind. The next reconciliation sees which.
		return true, r.Create(ctx, object)
	}
	if !metav1.IsControlledBy(object, page) {
		return false, nil
	}
	before := object.DeepCopyObject().(client.Object)
	one.set()
	if apiequality.Semantic.DeepEqual(before, object) {
		return true, nil
	}
	return true, r.Patch(ctx, object, lock(before))
}

// record writes the DNS record where it differs. Whether the Page is still there is then read from the API server.
func (r *reconciler) record(ctx context.Context, page *pages.Page) error {
	want := pages.Record{Hostname: page.Spec.Hostname, Service: page.Name + "." + page.Namespace}
	found, err := r.dns.Get(ctx, string(page.UID))
	if err != nil && !errors.Is(err, pages.ErrNotFound) || err == nil && found == want {
		return err
	}
	current := &pages.Page{}
	err = r.live.Get(ctx, client.ObjectKeyFromObject(page), current)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil || current.UID != page.UID || current.DeletionTimestamp != nil:
		return errBehind
	}
	return r.dns.Put(ctx, string(page.UID), want)
}

// finalize deletes the record.
func (r *reconciler) finalize(ctx context.Context, page *pages.Page) error {
	r.ready.DeleteLabelValues(page.Namespace, page.Name)
	before := page.DeepCopy()
	if !controllerutil.RemoveFinalizer(page, finalizer) {
		return nil
	}
	if err := r.dns.Delete(ctx, string(page.UID)); err != nil && !errors.Is(err, pages.ErrNotFound) {
		return err
	}
	return client.IgnoreNotFound(r.Patch(ctx, page, lock(before)))
}

// lock has a patch rejected if the object has changed since it was read.
func lock(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}
