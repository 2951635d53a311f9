package page

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// reports checks the condition, Events and the metric.
func reports(t *check.T, work check.Work[Entry]) {
	t.Behaviour("a Page whose Pods do not serve yet is not ready", func(b *check.B) {
		c := newCluster(b, work)
		c.stuck = true
		c.operator.Start()
		c.page("a", nil)
		c.notReady("a", pages.ReasonRollingOut)
		deployment := c.deployment("a")
		c.reports(deployment, appsv1.DeploymentStatus{
			ObservedGeneration: deployment.Generation, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1,
		})
		c.settle("b")
		if text := c.report("a", metav1.ConditionFalse, pages.ReasonRollingOut); text != "" {
			b.Fatalf("no Pod is available, and %s", text)
		}
		c.stuck = false
		c.ready("a")
	})
	t.Behaviour("while the DNS service is down, that is reported, and later the Page is ready", func(b *check.B) {
		c := newCluster(b, work)
		c.dns.down = true
		c.operator.Start()
		c.page("a", nil)
		c.notReady("a", pages.ReasonDNSError)
		c.hasObjects("a")
		c.dns.isDown(false)
		c.ready("a")
	})
	t.Behaviour("conditions of others stay, and the time of Ready changes only with its status", func(b *check.B) {
		c := started(b, work)
		since := c.since("a")
		b.Event("a user adds the condition Reviewed")
		c.must("writing a status", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			page := c.getPage("a")
			apimeta.SetStatusCondition(&page.Status.Conditions, metav1.Condition{Type: "Reviewed", Status: metav1.ConditionTrue, Reason: "Editor"})
			return c.client.Status().Update(b.Context(), page)
		}))
		c.touch("a")
		c.operator.Restart()
		c.settle("b")
		if !since.Equal(c.since("a")) {
			b.Fatalf("the lastTransitionTime of Ready has changed, and its status has not")
		}
		c.change("a", "the Markdown", func(page *pages.Page) { page.Spec.Markdown = "# Another" })
		c.ready("a")
		if apimeta.FindStatusCondition(c.getPage("a").Status.Conditions, "Reviewed") == nil {
			b.Fatalf("the condition of another controller was removed")
		}
	})
}

// metric checks what Prometheus scrapes.
func metric(t *check.T, work check.Work[Entry]) {
	t.Behaviour("the metric says of each Page whether it is ready, and has no series of one that is gone", func(b *check.B) {
		c := started(b, work)
		c.stray(kinds[0], "b")
		c.page("b", nil)
		c.notReady("b", pages.ReasonNameConflict)
		c.measured("a", "1")
		c.measured("b", "0")
		c.delete(kinds[0], "b")
		c.ready("b")
		c.measured("b", "1")
		c.operator.Restart()
		c.measured("b", "1")
		c.remove()
		c.gone(hostname("a"))
		c.measured("a", "")
		c.measured("b", "1")
	})
}

// hasObjects waits until a Page has its objects, whatever the DNS service has.
func (c *cluster) hasObjects(name string) {
	for _, k := range kinds {
		c.eventually(func() string {
			if !c.get(name, k.empty()) {
				return "the DNS service is down, and there is no " + k.name
			}
			return ""
		})
	}
}

// since is when Ready became what it is.
func (c *cluster) since(name string) *metav1.Time {
	ready := apimeta.FindStatusCondition(c.getPage(name).Status.Conditions, pages.ConditionReady)
	if ready == nil {
		c.b.Fatalf("the Page %s has no condition Ready", name)
	}
	return &ready.LastTransitionTime
}

// events checks what kubectl describe shows.
func events(t *check.T, work check.Work[Entry]) {
	t.Behaviour("each new reason is an Event of the Page, once: Warning where something is wrong, else Normal", func(b *check.B) {
		c := newCluster(b, work)
		c.dns.down = true
		c.operator.Start()
		c.page("a", nil)
		c.notReady("a", pages.ReasonDNSError)
		c.announced("a", "Warning DNSError")
		c.dns.isDown(false)
		c.ready("a")
		c.announced("a", "Warning DNSError", "Normal Serving")
		c.stray(kinds[0], "b")
		c.page("b", nil)
		c.notReady("b", pages.ReasonNameConflict)
		c.announced("b", "Warning NameConflict")
		for _, name := range []string{"a", "b"} {
			c.touch(name)
		}
		c.operator.Restart()
		c.page("c", nil)
		c.ready("c")
		c.announced("c", "Normal Serving")
		c.announced("a", "Warning DNSError", "Normal Serving")
		c.announced("b", "Warning NameConflict")
	})
}

// announcedOnce checks that what is tried again is not announced again.
func announcedOnce(t *check.T, work check.Work[Entry]) {
	t.Behaviour("a reason whose write fails some times is announced once", func(b *check.B) {
		c := newCluster(b, work)
		c.stray(kinds[0], "a")
		var failed atomic.Int64
		c.operator.Intercept(func(request kube.Request) error {
			if kube.Writes(request) && request.Resource == "pages/status" && failed.Add(1) <= 3 {
				return kube.ErrAway
			}
			return nil
		})
		c.operator.Start()
		c.page("a", nil)
		c.notReady("a", pages.ReasonNameConflict)
		// Events are sent later than they are recorded: when there is one of another Page, those of this one are there, too.
		c.page("b", nil)
		c.ready("b")
		c.announced("b", "Normal Serving")
		c.announced("a", "Warning NameConflict")
	})
}

// announced waits until the Events of a Page are these, besides those of RollingOut, which may pass before it is noticed.
func (c *cluster) announced(name string, want ...string) {
	slices.Sort(want)
	uid := c.getPage(name).UID
	c.eventually(func() string {
		var all corev1.EventList
		c.must("listing Events", c.client.List(c.b.Context(), &all, client.InNamespace(c.namespace)))
		got := []string{}
		for i := range all.Items {
			event := &all.Items[i]
			if event.InvolvedObject.UID != uid || event.Reason == pages.ReasonRollingOut {
				continue
			}
			for range max(1, count(event)) {
				got = append(got, event.Type+" "+event.Reason)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Sprintf("the Events of the Page %s should be %q, and are %q", name, want, got)
		}
		return ""
	})
}

// count is how often an Event was recorded.
func count(event *corev1.Event) int {
	if event.Series != nil {
		return int(event.Series.Count)
	}
	return int(event.Count)
}

// measured waits until the series of a Page has a value, or there is none if that is empty.
func (c *cluster) measured(name, want string) {
	c.eventually(func() string {
		var values []string
		families, err := c.registry.Gather()
		c.must("gathering the metrics", err)
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				labels := map[string]string{}
				for _, label := range metric.GetLabel() {
					labels[label.GetName()] = label.GetValue()
				}
				if family.GetName() == pages.Metric && labels["namespace"] == c.namespace && labels["name"] == name && len(labels) == 2 {
					values = append(values, fmt.Sprint(metric.GetGauge().GetValue()))
				}
			}
		}
		if got := strings.Join(values, " "); got != want {
			return fmt.Sprintf("%s of the Page %s should be %q, and is %q", pages.Metric, name, want, got)
		}
		return ""
	})
}
