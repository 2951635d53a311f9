package bench

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"example.com/workbook/shared/audit"
)

// metrics are as an API server and an operator print them.
const metrics = `# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.
process_cpu_seconds_total 12.5
apiserver_request_total{code="201",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="APPLY",version="v1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="status",verb="PATCH",version="v1"} 4
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 100
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 1000
workqueue_work_duration_seconds_count{controller="lolcow",name="lolcow"} 7
workqueue_work_duration_seconds_bucket{controller="lolcow",name="lolcow",le="1e-08"} 0
`

func TestMetricsAreSummedUp(t *testing.T) {
	if got := sum(serverCPU, metrics); got != 12.5 {
		t.Errorf("got %v CPU seconds, want 12.5", got)
	}
	if got := sum(writes, metrics) - sum(renewed, metrics); got != 7 {
		t.Errorf("got %v writes, want 7: no reads, and no leases", got)
	}
	if got := sum(reconciled, metrics); got != 7 {
		t.Errorf("got %v reconciliations, want 7", got)
	}
}

// request is one that arrived after some seconds and took one.
func request(second int, verb, name, subresource string, code int32) audit.Event {
	at := time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC)
	return audit.Event{
		Verb:                     verb,
		ObjectRef:                &auditv1.ObjectReference{Resource: "lolcows", Name: name, Subresource: subresource},
		ResponseStatus:           &metav1.Status{Code: code},
		RequestReceivedTimestamp: metav1.NewMicroTime(at), StageTimestamp: metav1.NewMicroTime(at.Add(time.Second)),
	}
}

func TestFinishedIsTheFirstTimeOfTheLastObject(t *testing.T) {
	requests := []audit.Event{
		request(10, "patch", "a", "", 200),
		request(11, "patch", "a", "status", 409),
		request(12, "patch", "a", "status", 200),
		request(14, "patch", "b", "status", 200),
		request(20, "patch", "a", "status", 200), // again: it had been taken care of
	}
	status := func(e *audit.Event) bool { return e.ObjectRef.Subresource == "status" }
	if got := First(requests).Second(); got != 10 {
		t.Errorf("the first request arrived at %d, want 10", got)
	}
	if got := Finished(requests, status).Second(); got != 15 {
		t.Errorf("finished at %d, want 15", got)
	}
}

func TestFinishedCountsEachCreation(t *testing.T) {
	requests := []audit.Event{request(10, "create", "", "", 201), request(14, "create", "", "", 201)}
	if got := Finished(requests, func(*audit.Event) bool { return true }).Second(); got != 15 {
		t.Errorf("finished at %d, want 15", got)
	}
}

func TestRequestsAreCountedForEachObject(t *testing.T) {
	costs := []Cost{
		{Requests: []audit.Event{request(1, "patch", "a", "status", 200), request(2, "patch", "b", "status", 200)}},
		{Requests: []audit.Event{request(1, "update", "a", "status", 409)}},
	}
	var text strings.Builder
	Table(&text, "2 Lolcows", []string{"operator", "scaffold"}, Requests(costs, 2))
	want := `
2 Lolcows                         operator    scaffold
    patch lolcows/status              1.00        0.00
    update lolcows/status, 409        0.00        0.50
`
	if got := text.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestASamplerCountsBetweenMoments(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &sampler{samples: []sample{{at, 0, 0}, {at.Add(time.Second), 2 * time.Second, 500}, {at.Add(2 * time.Second), 3 * time.Second, 900}, {at.Add(3 * time.Second), 7 * time.Second, 100}}}
	if cpu, peak := s.used(at.Add(1500*time.Millisecond), at.Add(time.Minute)); cpu != 5*time.Second || peak != 900 {
		t.Errorf("got %v and %d, want 5s and 900", cpu, peak)
	}
	if cpu, _ := s.used(at.Add(1500*time.Millisecond), at.Add(2500*time.Millisecond)); cpu != time.Second {
		t.Errorf("got %v until the third sample, want 1s", cpu)
	}
}

func TestMedian(t *testing.T) {
	if got := Median([]float64{3, 1, 2}, func(f float64) float64 { return f }); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
}

func TestCPUIsOfEachProcess(t *testing.T) {
	before, err := CPUOf(t.Context(), t.TempDir()+"/kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine a process may get no CPU time for a while.
	after := before
	for began := time.Now(); after.Since(before)["bench"] <= 0 && time.Since(began) < time.Minute; {
		for range 1000 {
			_ = strings.Repeat("x", 1<<16)
		}
		if after, err = CPUOf(t.Context(), t.TempDir()+"/kubeconfig"); err != nil {
			t.Fatal(err)
		}
	}
	if used := after.Since(before)["bench"]; used <= 0 || len(after) != 1 {
		t.Errorf("this process used %s of %v, want more than 0 and no other process", used, after)
	}
	used := CPU{"a": time.Second, "b": 2500 * time.Millisecond}.Since(CPU{"a": 500 * time.Millisecond})
	if got, want := used.String(), "3.0 s: b 2.5, a 0.5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
