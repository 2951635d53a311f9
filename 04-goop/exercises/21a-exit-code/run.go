package exitcode

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// run is one call of Run, and all others that write the Goop.
type run struct {
	b      *check.B
	entry  Entry
	wire   *kube.Wire
	client client.Client
	reader client.WithWatch
	key    client.ObjectKey
	ctx    *endless
	// created is set when Run has the whole response about its Goop: after that its context may end.
	created atomic.Bool
	// other is the UID of a Goop that is not the one of Run.
	other types.UID

	returned <-chan struct{}
	code     int
	err      error
}

func newRun(b *check.B, entry Entry) *run {
	scheme := runtime.NewScheme()
	r := &run{
		b: b, entry: entry, wire: kube.NewWire(b), key: client.ObjectKey{Namespace: kube.Namespace(b), Name: "moo"},
		ctx: newEndless(),
	}
	r.must("making a scheme", v1alpha1.AddToScheme(scheme))
	var err error
	r.client, err = client.New(kube.Config(b), client.Options{Scheme: scheme})
	r.must("making a client", err)
	config := r.wire.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return creations{next, &r.created} })
	r.reader, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	r.must("making a client", err)
	b.Cleanup(func() { r.ctx.end(context.Canceled) })
	return r
}

func (r *run) must(what string, err error) {
	if err != nil {
		r.b.Fatalf("%s: %v", what, err)
	}
}

func (r *run) goop() *v1alpha1.Goop {
	return &v1alpha1.Goop{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.key.Namespace, Name: r.key.Name}, Spec: v1alpha1.GoopSpec{Cmd: []string{"true"}},
	}
}

// call calls Run.
func (r *run) call() {
	r.b.Event("Run is called")
	r.returned = r.b.Go(func() { r.code, r.err = r.entry(r.ctx, r.reader, r.goop()) })
}

// start calls Run, and waits until it has created its Goop and watches.
func (r *run) start() {
	r.call()
	r.b.Eventually(patience, func() string {
		switch {
		case !r.created.Load():
			return "Run has created no Goop"
		case r.wire.OpenWatches() == 0:
			return "Run does not watch"
		}
		return ""
	})
}

func (r *run) get() (*v1alpha1.Goop, error) {
	var goop v1alpha1.Goop
	err := r.client.Get(r.b.Context(), r.key, &goop)
	return &goop, err
}

// update writes the status, as the operator.
func (r *run) update(change func(status *v1alpha1.GoopStatus)) {
	goop, err := r.get()
	r.must("reading the Goop", err)
	change(&goop.Status)
	r.must("writing the status", r.client.Status().Update(r.b.Context(), goop))
}

// working is a change of the status that is not the end.
func (r *run) working() {
	r.b.Event("the operator reports that a worker runs")
	r.update(func(status *v1alpha1.GoopStatus) {
		status.Desired++
		status.Running++
		apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionComplete, Status: metav1.ConditionFalse, Reason: "Working",
		})
	})
}

// ends writes the end of the work: the condition, and the exit codes of workers that have failed.
func (r *run) ends(condition string, codes []int32) {
	r.b.Event("the operator reports the end: %s, exit codes %v", condition, codes)
	r.update(func(status *v1alpha1.GoopStatus) {
		status.Running = 0
		for i, code := range codes {
			status.Failures = append(status.Failures, v1alpha1.Failure{Node: "node", Round: int32(i), ExitCode: code})
		}
		if len(codes) > 0 {
			status.ExitCode = new(slices.Max(codes))
		}
		apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Ended"})
	})
}

// cancel ends the context of Run.
func (r *run) cancel(err error) {
	if r.ctx.Err() == nil {
		r.b.Event("the context ends: %v", err)
	}
	r.ctx.end(err)
}

// cancelAtWatch calls Run, and ends its context while its watch begins. If it begins before there is a Goop, the context ends as soon as
// Run has the response about the Goop.
func (r *run) cancelAtWatch(err error) {
	r.wire.Before(func(request kube.Request, _ *http.Request) (*http.Response, error) {
		if request.Verb == "watch" && r.created.Load() {
			r.cancel(err)
		}
		return nil, nil
	})
	r.call()
	r.b.Eventually(patience, func() string {
		if r.hasReturned() || (r.created.Load() && r.wire.OpenWatches() > 0) {
			return ""
		}
		return "Run has not returned, and does not watch"
	})
	r.cancel(err)
}

// reads are the requests by which Run has read Goops, without watches.
func (r *run) reads() []kube.Request {
	return slices.DeleteFunc(r.wire.Requests("get", "list"), func(request kube.Request) bool { return request.Resource != "goops" })
}

func (r *run) hasReturned() bool {
	select {
	case <-r.returned:
		return true
	default:
		return false
	}
}

// wait waits until Run has returned.
func (r *run) wait() {
	r.b.Eventually(patience, func() string {
		if !r.hasReturned() {
			return "Run has not returned"
		}
		return ""
	})
	r.b.Event("Run has returned %d, and the error: %v", r.code, r.err)
}

// waitsOn ends the behaviour if Run returns while its watch is silent.
func (r *run) waitsOn() {
	for began := time.Now(); time.Since(began) < silence; time.Sleep(20 * time.Millisecond) {
		if r.hasReturned() {
			r.b.Fatalf("its watch brought nothing, and Run has noticed the end: it polls")
		}
	}
}

func (r *run) returns(code int) {
	r.wait()
	// Its text depends on where the request was when it failed.
	switch _, isRequest := errors.AsType[*url.Error](r.err); {
	case isRequest:
		r.b.Fatalf("Run returned the error of a request: the timeline has it")
	case r.err != nil:
		r.b.Fatalf("Run returned an error: %v", r.err)
	case r.code != code:
		r.b.Fatalf("Run returned %d, and should have returned %d", r.code, code)
	}
}

func (r *run) fails(why string) {
	r.wait()
	if r.err == nil {
		r.b.Fatalf("%s, and Run returned %d without an error", why, r.code)
	}
}

func (r *run) isGone() {
	switch _, err := r.get(); {
	case err == nil:
		r.b.Fatalf("Run has returned, and the Goop is still there")
	case !apierrors.IsNotFound(err):
		r.b.Fatalf("reading the Goop: %v", err)
	}
}

func (r *run) isThere() {
	switch goop, err := r.get(); {
	case err != nil:
		r.b.Fatalf("the Goop of another user is not there any more: %v", err)
	case goop.UID != r.other:
		r.b.Fatalf("the Goop of another user is not there any more: another one is")
	}
}
