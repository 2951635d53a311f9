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

// crash says at which of its requests, and how, the operator is struck down. The zero value is no crash.
type crash struct {
	at int
	// after: the request reaches the server and takes effect, and the answer is lost.
	after bool
}

var errCrash = errors.New("the operator crashed")

// requests counts the requests that go through it and fails one of them, once. Of the Jobs that were made it counts
// those whose making took effect.
type requests struct {
	next   http.RoundTripper
	crash  crash
	seen   []string
	writes int
	jobs   int
	// down: the operator has crashed, and was not started again yet.
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
	answer, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if what == "POST jobs" && answer.StatusCode == http.StatusCreated {
		r.jobs++
	}
	if len(r.seen) == r.crash.at {
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		r.down = true
		return nil, errCrash
	}
	return answer, nil
}

// TestCrashAtEveryRequest lives through one story of a Flux (it runs, fails, is restarted, suspended, resumed and
// completes, and its TTL passes) once undisturbed, and then for each request that the two controllers send in it: once
// failed before it is sent, and once, if it writes, after it took effect. The objects at the end are the same, and one
// Job was made for each attempt.
func TestCrashAtEveryRequest(t *testing.T) {
	t.Parallel()
	undisturbed, all := story(t, crash{})
	if len(all) < 60 {
		t.Fatalf("the story takes only %d requests: it does not test what it should", len(all))
	}
	for n, what := range all {
		for _, after := range []bool{false, true} {
			if after && strings.HasPrefix(what, http.MethodGet) {
				continue
			}
			// A sample, which is another one each time, shows most of it.
			if testing.Short() && rand.IntN(4) > 0 {
				continue
			}
			t.Run(fmt.Sprintf("%d %s after=%t", n+1, what, after), func(t *testing.T) {
				t.Parallel()
				end, seen := story(t, crash{at: n + 1, after: after})
				g := NewWithT(t)
				g.Expect(seen[n]).To(Equal(what), "the crash came elsewhere")
				g.Expect(end).To(BeComparableTo(undisturbed))
			})
		}
	}
	t.Logf("%d requests", len(all))
}

var podName = regexp.MustCompile(`bees-\d-\d-[0-9a-f]+`)

// storyEnd is all that a story leaves behind, without what differs from run to run.
type storyEnd struct {
	Flux        v1alpha1.FluxStatus
	Setup       v1alpha1.FluxSetupSpec
	SetupStatus v1alpha1.FluxSetupStatus
	Setups      int
	JobsMade    int
	Left        []string
	Restarts    []string
}

// operator is both controllers, in the world of one Flux. What they read comes from a cache that is never behind; what
// they write, and what they read past the cache, goes through requests.
type operator struct {
	*bees
	fluxes   *FluxReconciler
	requests *requests
	cached   client.Client
	direct   client.Client
}

func newOperator(t *testing.T, crash crash, spec v1alpha1.FluxSpec) *operator {
	t.Helper()
	o := &operator{bees: &bees{world: newWorld(t), t: t}, requests: &requests{crash: crash}}
	o.clock.SetTime(time.Now().Truncate(time.Second))
	config := rest.CopyConfig(o.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		o.requests.next = next
		return o.requests
	})
	// The mapper and its discovery requests are not the controllers' own.
	direct, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: o.client.RESTMapper()})
	o.Expect(err).NotTo(HaveOccurred())
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

// start starts the operator, which remembers nothing. What there is of pods its cache tells it at once.
func (o *operator) start() {
	o.requests.down = false
	o.fluxes = NewFluxReconciler(o.cached, o.direct, o.events, o.clock)
	o.reconciler = o.newReconciler(o.cached)
	o.reconciler.apiReader = o.direct
	for _, pod := range o.pods() {
		o.reconciler.terminations.note(&pod, false, false)
	}
}

// settle makes passes of both controllers until there is nothing more to do. One that fails is the end of the
// operator: the next makes them all again.
func (o *operator) settle() {
	o.t.Helper()
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
		// What a status may have to wait for is over.
		o.clock.Step(readinessPace)
	}
}

// changeFlux changes the spec of the Flux, as its user.
func (o *operator) changeFlux(change func(*v1alpha1.FluxSpec)) {
	o.t.Helper()
	flux := fetch[v1alpha1.Flux](o.bees)
	change(&flux.Spec)
	o.Expect(o.client.Update(o.ctx, flux)).To(Succeed())
	o.settle()
}

// run brings the present attempt to its quorum.
func (o *operator) run() {
	o.t.Helper()
	launch, job := o.setup().Spec.Launch, o.job()
	o.Expect(launch.JobUID).To(Equal(string(job.UID)))
	o.Expect(job.Spec.Suspend).To(HaveValue(BeFalse()))
	o.Expect(job.Annotations).To(HaveKeyWithValue(annotationStarted, "true"))
	o.startPods()
	o.ready(0, 1)
	o.settle()
	o.Expect(conditionOf(fetch[v1alpha1.Flux](o.bees).Status.Conditions, v1alpha1.ConditionRunning).Status).To(Equal(metav1.ConditionTrue))
}

// endJob plays Kubernetes: rank 0 has ended, and the Job controller says what that means.
func (o *operator) endJob(exitCode int32, kind batchv1.JobConditionType, reason string) {
	o.t.Helper()
	o.terminate(0, exitCode, "last words")
	o.judge(kind, reason)
	o.settle()
}

func story(t *testing.T, crash crash) (storyEnd, []string) {
	t.Helper()
	spec := fluxOf(2)
	spec.MaxRestarts = 2
	o := newOperator(t, crash, spec)
	var end storyEnd
	note := func() {
		message := conditionOf(fetch[v1alpha1.Flux](o.bees).Status.Conditions, v1alpha1.ConditionRestarting).Message
		end.Restarts = append(end.Restarts, podName.ReplaceAllString(message, "POD"))
	}

	o.settle()
	o.run()
	o.endJob(3, batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded)
	o.clock.Step(maxBackOff)
	o.settle()
	note()
	o.collect()
	o.settle()
	o.run()
	o.changeFlux(func(spec *v1alpha1.FluxSpec) { spec.Suspend = true })
	o.collect()
	o.settle()
	o.changeFlux(func(spec *v1alpha1.FluxSpec) { spec.Suspend = false })
	o.run()
	o.endJob(0, batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	o.changeFlux(func(spec *v1alpha1.FluxSpec) { spec.TTLSecondsAfterFinished = new(int32(0)) })
	o.collect()
	o.settle()

	var setups v1alpha1.FluxSetupList
	o.Expect(o.client.List(o.ctx, &setups, client.InNamespace(o.namespace))).To(Succeed())
	setup, flux := o.setup(), fetch[v1alpha1.Flux](o.bees)
	o.Expect(flux.Status.SetupRef.UID).To(Equal(string(setup.UID)))
	end.Setups, end.JobsMade = len(setups.Items), o.requests.jobs
	end.Flux, end.Setup, end.SetupStatus = flux.Status, setup.Spec, setup.Status
	end.Flux.SetupRef, end.Setup.Launch = nil, nil
	end.Flux.StartTime, end.Flux.CompletionTime = nil, nil
	// The namespace is part of what the brokers are given.
	end.SetupStatus.ConfigHash = ""
	// A launch that fails at first is recorded twice, and each record is a generation.
	o.Expect(setup.Status.ObservedGeneration).To(Equal(setup.Generation))
	end.SetupStatus.ObservedGeneration = 0
	for i := range end.SetupStatus.Conditions {
		o.Expect(end.SetupStatus.Conditions[i].ObservedGeneration).To(Equal(setup.Generation))
		end.SetupStatus.Conditions[i].ObservedGeneration = 0
	}
	for _, conditions := range [][]metav1.Condition{end.Flux.Conditions, end.SetupStatus.Conditions} {
		for i := range conditions {
			conditions[i].LastTransitionTime = metav1.Time{}
		}
	}
	end.Left = o.dependents()
	o.Expect(end.Setup.Attempt).To(Equal(int32(3)))
	o.Expect(end.Setup.Restarts).To(Equal(int32(1)))
	o.Expect(end.JobsMade).To(Equal(3))
	o.Expect(end.Left).To(BeEmpty())
	return end, o.requests.seen
}
