package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// crash defines at which request of a part of the story, and how, the operator crashes. The zero value means no crash.
type crash struct {
	at int
	// after: the request reaches the server and takes effect, and the response is lost.
	after bool
}

var errCrash = errors.New("the operator crashed")

// requests counts the requests that go through it, and fails one of them. It also counts the creations of Jobs that
// took effect.
type requests struct {
	next   http.RoundTripper
	crash  crash
	seen   []string
	writes int
	jobs   int
	// down: the operator has crashed, and has not been restarted yet.
	down bool
}

var upToNamespace = regexp.MustCompile(`.*/namespaces/[^/]+/`)

func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.down {
		return nil, errCrash
	}
	what := req.Method + " " + upToNamespace.ReplaceAllString(req.URL.Path, "")
	r.seen = append(r.seen, what)
	if req.Method != http.MethodGet {
		r.writes++
	}
	if len(r.seen) == r.crash.at && !r.crash.after {
		return nil, errCrash
	}
	response, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if what == "POST jobs" && response.StatusCode == http.StatusCreated {
		r.jobs++
	}
	if len(r.seen) == r.crash.at {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		r.down = true
		return nil, errCrash
	}
	return response, nil
}

// part is a part of the story: what happens until there is nothing more to do.
type part struct {
	requests []string
	end      state
}

// crashes are all that a part can have: each request fails before it is sent, and each write also after it took effect.
func (p part) crashes() []crash {
	var all []crash
	for n, what := range p.requests {
		all = append(all, crash{at: n + 1})
		if !strings.HasPrefix(what, http.MethodGet) {
			all = append(all, crash{at: n + 1, after: true})
		}
	}
	return all
}

// TestCrashAtEveryRequest runs one lifecycle of a Flux: it runs, fails, is restarted, suspended, resumed and completes,
// and its TTL expires. The first run is undisturbed. Then the lifecycle is repeated, with a crash in each of its parts, until
// each part has had all of its crashes. At the end of each part the objects are those of the undisturbed run, and one Job
// was created for each attempt.
func TestCrashAtEveryRequest(t *testing.T) {
	t.Parallel()
	undisturbed := story(t, nil, nil)
	requests, crashes, stories := 0, 0, 0
	for _, p := range undisturbed {
		requests, crashes, stories = requests+len(p.requests), crashes+len(p.crashes()), max(stories, len(p.crashes()))
	}
	if requests < 60 {
		t.Fatalf("the lifecycle has only %d requests: some steps are missing", requests)
	}
	for n := range stories {
		// A random sample is enough for a short test.
		if testing.Short() && rand.IntN(4) > 0 {
			continue
		}
		planned := make([]crash, len(undisturbed))
		for i, p := range undisturbed {
			if all := p.crashes(); n < len(all) {
				planned[i] = all[n]
			}
		}
		t.Run(fmt.Sprintf("crash %d of each part", n+1), func(t *testing.T) {
			t.Parallel()
			story(t, planned, undisturbed)
		})
	}
	t.Logf("%d requests, %d crashes in %d stories of %d parts", requests, crashes, stories, len(undisturbed))
}

var podName = regexp.MustCompile(`bees-\d-\d-[0-9a-f]+`)

// state is what exists, without what differs from run to run.
type state struct {
	Flux        v1alpha1.FluxStatus
	Setup       v1alpha1.FluxSetupSpec
	SetupStatus v1alpha1.FluxSetupStatus
	Setups      int
	JobsMade    int
	Left        []string
}

// operator has both controllers, for one Flux. They read from a cache that is always up to date. Their writes, and
// their reads that bypass the cache, go through requests.
type operator struct {
	*setupTestEnv
	fluxes   *FluxReconciler
	requests *requests
	cached   client.Client
	direct   client.Client
	// crashes are those of each part, and undisturbed is what each part is compared with; nil in the undisturbed run.
	crashes            []crash
	undisturbed, parts []part
}

func newOperator(t *testing.T, spec v1alpha1.FluxSpec) *operator {
	t.Helper()
	o := &operator{setupTestEnv: &setupTestEnv{testEnv: newTestEnv(t), t: t}, requests: &requests{}}
	o.clock.SetTime(time.Now().Truncate(time.Second))
	config := withRepeatedReads(o.config)
	withWatch := func(config *rest.Config) client.WithWatch {
		// The requests of the RESTMapper and for discovery are not counted.
		c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: o.client.RESTMapper()})
		o.Expect(err).NotTo(HaveOccurred())
		return c
	}
	o.client = withWatch(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		o.requests.next = next
		return o.requests
	})
	direct := withWatch(config)
	o.direct = direct
	o.cached = interceptor.NewClient(direct, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			return o.client.Get(ctx, key, object, opts...)
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return o.client.List(ctx, list, opts...)
		},
	})
	o.start()
	o.flux = o.makeFlux(spec)
	return o
}

// start starts the operator with empty memory. The existing pods are in its cache at once.
func (o *operator) start() {
	o.requests.down = false
	o.fluxes = NewFluxReconciler(o.cached, o.direct, o.events, o.clock)
	o.fluxes.BackOff = BackOff(maxBackOff) // the clock is stepped more often after a crash, and that must not end the back-off
	o.reconciler = o.newReconciler(o.cached)
	o.reconciler.apiReader = o.direct
	for _, pod := range o.pods() {
		o.reconciler.terminations.note(&pod, false, false)
	}
}

// settle reconciles with both controllers until there is nothing more to do, which ends a part of the story. If a controller
// fails, the operator is restarted.
func (o *operator) settle() {
	o.t.Helper()
	number := len(o.parts)
	o.requests.seen, o.requests.crash = nil, crash{}
	if o.crashes != nil {
		o.requests.crash = o.crashes[number]
	}
	key := ctrl.Request{NamespacedName: o.key("bees")}
	for writes := -1; writes != o.requests.writes; {
		writes = o.requests.writes
		_, err := o.fluxes.Reconcile(o.ctx, key)
		if err == nil {
			_, err = o.reconciler.Reconcile(o.ctx, key)
		}
		if err != nil {
			o.Expect(err).To(MatchError(ContainSubstring(errCrash.Error())))
			o.start()
			writes = -1
		}
		// Let a delayed status write become due.
		o.clock.Step(readinessInterval)
	}
	now := part{requests: o.requests.seen, end: o.state()}
	o.parts = append(o.parts, now)
	if o.crashes == nil {
		return
	}
	at, before := o.crashes[number], o.undisturbed[number]
	where := "without a crash"
	if at.at > 0 {
		where = fmt.Sprintf("crash at request %d, %s, after=%t", at.at, before.requests[at.at-1], at.after)
		o.Expect(now.requests[at.at-1]).To(Equal(before.requests[at.at-1]), "part %d: the crash was at another request", number)
	}
	o.Expect(now.end).To(BeComparableTo(before.end), "part %d, %s", number, where)
}

// changeFlux simulates a user, who changes the spec of the Flux.
func (o *operator) changeFlux(change func(*v1alpha1.FluxSpec)) {
	o.t.Helper()
	flux := fetch[v1alpha1.Flux](o.setupTestEnv)
	change(&flux.Spec)
	o.Expect(o.client.Update(o.ctx, flux)).To(Succeed())
	o.settle()
}

// run brings the current attempt to its quorum.
func (o *operator) run() {
	o.t.Helper()
	launch, job := o.setup().Spec.Launch, o.job()
	o.Expect(launch.JobUID).To(Equal(string(job.UID)))
	o.Expect(job.Spec.Suspend).To(HaveValue(BeFalse()))
	o.Expect(job.Annotations).To(HaveKeyWithValue(annotationStarted, "true"))
	o.startPods()
	o.ready(0, 1)
	o.settle()
	o.Expect(conditionOf(fetch[v1alpha1.Flux](o.setupTestEnv).Status.Conditions, v1alpha1.ConditionRunning).Status).To(Equal(metav1.ConditionTrue))
}

// endJob simulates the kubelet, which reports the end of rank 0, and the Job controller, which ends the Job.
func (o *operator) endJob(exitCode int32, reason string, kinds ...batchv1.JobConditionType) {
	o.t.Helper()
	o.terminate(0, exitCode, "last output")
	for _, kind := range kinds {
		o.finishJob(kind, reason)
	}
	o.settle()
}

// story returns its parts. With crashes, it expects of each part what the undisturbed one was.
func story(t *testing.T, crashes []crash, undisturbed []part) []part {
	t.Helper()
	spec := fluxOf(2)
	spec.MaxRestarts = 2
	o := newOperator(t, spec)
	o.crashes, o.undisturbed = crashes, undisturbed

	o.settle()
	o.run()
	o.endJob(3, batchv1.JobReasonBackoffLimitExceeded, batchv1.JobFailureTarget, batchv1.JobFailed)
	o.clock.Step(maxBackOff)
	o.settle()
	o.collect()
	o.settle()
	o.run()
	o.changeFlux(func(spec *v1alpha1.FluxSpec) { spec.Suspend = true })
	o.collect()
	o.settle()
	o.changeFlux(func(spec *v1alpha1.FluxSpec) { spec.Suspend = false })
	o.run()
	o.endJob(0, batchv1.JobReasonSuccessPolicy, batchv1.JobSuccessCriteriaMet)
	o.changeFlux(func(spec *v1alpha1.FluxSpec) { spec.TTLSecondsAfterFinished = new(int32(0)) })
	o.collect()
	o.settle()

	end := o.parts[len(o.parts)-1].end
	o.Expect(end.Setup.Attempt).To(Equal(int32(3)))
	o.Expect(end.Setup.Restarts).To(Equal(int32(1)))
	o.Expect(end.JobsMade).To(Equal(3))
	o.Expect(end.Left).To(BeEmpty())
	return o.parts
}

func (o *operator) state() state {
	o.t.Helper()
	var setups v1alpha1.FluxSetupList
	o.Expect(o.client.List(o.ctx, &setups, client.InNamespace(o.namespace))).To(Succeed())
	setup, flux := o.setup(), fetch[v1alpha1.Flux](o.setupTestEnv)
	o.Expect(flux.Status.SetupRef.UID).To(Equal(string(setup.UID)))
	now := state{Flux: flux.Status, Setup: setup.Spec, SetupStatus: setup.Status, Setups: len(setups.Items), JobsMade: o.requests.jobs}
	now.Flux.SetupRef, now.Setup.Launch = nil, nil
	now.Flux.StartTime, now.Flux.CompletionTime = nil, nil
	now.SetupStatus.LeaderPod = podName.ReplaceAllString(now.SetupStatus.LeaderPod, "POD")
	// The hash depends on the namespace, which the files of the brokers contain.
	now.SetupStatus.ConfigHash = ""
	// A launch that fails at first is recorded twice, and each record is a new generation.
	o.Expect(setup.Status.ObservedGeneration).To(Equal(setup.Generation))
	now.SetupStatus.ObservedGeneration = 0
	for i := range now.SetupStatus.Conditions {
		o.Expect(now.SetupStatus.Conditions[i].ObservedGeneration).To(Equal(setup.Generation))
		now.SetupStatus.Conditions[i].ObservedGeneration = 0
	}
	for _, conditions := range [][]metav1.Condition{now.Flux.Conditions, now.SetupStatus.Conditions} {
		for i := range conditions {
			conditions[i].LastTransitionTime = metav1.Time{}
			conditions[i].Message = podName.ReplaceAllString(conditions[i].Message, "POD")
		}
	}
	now.Left = o.dependents()
	return now
}
