// Package page is the capstone of stage 2: a web page with a name, from four objects of which one is not in the cluster.
package page

import (
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/workbook/02-lolcow/exercises/internal/pages"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes, besides role.yaml.
type Entry func(mgr ctrl.Manager, dns pages.DNS, registry prometheus.Registerer) error

// Check plays users, the DNS service, the Deployment controller and faults.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a Page gets its objects and its DNS record, and is ready", func(b *check.B) {
		started(b, work)
	})
	if !ok {
		return
	}
	for _, behaviours := range []func(*check.T, check.Work[Entry]){
		objects, permissions, drift, conflicts, reports, events, announcedOnce, metric, deletions, held,
		rests, faults, crashes, unwritten,
	} {
		behaviours(t, work)
	}
}

// started is a cluster with an operator, and a Page that is ready.
func started(b *check.B, work check.Work[Entry]) *cluster {
	c := newCluster(b, work)
	c.operator.Start()
	c.page("a", nil)
	c.ready("a")
	return c
}

// objects checks what a Page has.
func objects(t *check.T, work check.Work[Entry]) {
	t.Behaviour("its Pods are admitted where the standard restricted is enforced", func(b *check.B) {
		started(b, work).admit("a")
	})
	t.Behaviour("two Pages have Pods and Services of their own", func(b *check.B) {
		c := started(b, work)
		c.page("b", nil)
		c.ready("b")
		c.apart("a", "b")
	})
	t.Behaviour("Markdown of 262,144 bytes arrives as it is", func(b *check.B) {
		c := newCluster(b, work)
		c.operator.Start()
		c.page("a", func(page *pages.Page) { page.Spec.Markdown = strings.Repeat("0123456789abcde\n", 1<<14) })
		c.ready("a")
	})
	t.Behaviour("a change of the Markdown rolls out, and what the Pods of before serve is not ready", func(b *check.B) {
		c := started(b, work)
		c.stuck = true
		c.change("a", "the Markdown", func(page *pages.Page) { page.Spec.Markdown = "# Another" })
		c.notReady("a", pages.ReasonRollingOut)
		deployment := c.deployment("a")
		b.Event("the Deployment controller has noticed the change, and no Pod is updated")
		c.reports(deployment, appsv1.DeploymentStatus{
			ObservedGeneration: deployment.Generation, Replicas: 2, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		})
		c.settle("b")
		if text := c.report("a", metav1.ConditionFalse, pages.ReasonRollingOut); text != "" {
			b.Fatalf("of two Pods one is of before, and %s", text)
		}
		c.stuck = false
		c.ready("a")
	})
	t.Behaviour("a change of the hostname replaces the DNS record", func(b *check.B) {
		c := started(b, work)
		c.change("a", "the hostname", func(page *pages.Page) { page.Spec.Hostname = "moved.example.com" })
		c.ready("a")
		c.named("moved.example.com")
	})
}

// settle waits until the operator has reported about a Page that is created now, and so looked at what happened before.
func (c *cluster) settle(name string) {
	for _, name := range []string{name, name + "-again"} {
		c.page(name, nil)
		c.eventually(func() string {
			page := c.getPage(name)
			if len(page.Status.Conditions) == 0 {
				return "the Page " + name + " has no condition Ready"
			}
			return ""
		})
	}
}

// named checks that these records are in the DNS service, and no others.
func (c *cluster) named(hostnames ...string) {
	if got, want := strings.Join(c.dns.hostnames(), ", "), strings.Join(hostnames, ", "); got != want {
		c.b.Fatalf("the DNS service has records of %q, and should have those of %q", got, want)
	}
}

// permissions checks role.yaml.
func permissions(t *check.T, work check.Work[Entry]) {
	t.Behaviour("role.yaml permits nothing that the operator does not need", func(b *check.B) {
		c := newCluster(b, work)
		if text := excess(c.role()); text != "" {
			b.Fatalf("%s", text)
		}
		if !blocks(c.role()) {
			b.Fatalf("role.yaml does not permit to update pages/finalizers, which OwnerReferencesPermissionEnforcement asks for")
		}
	})
}

// conflicts checks names that users have taken.
func conflicts(t *check.T, work check.Work[Entry]) {
	for i, k := range kinds {
		t.Behaviour("a "+k.name+" of that name which the Page does not control is left alone, until it is deleted", func(b *check.B) {
			c := started(b, work)
			// One is of a Page that was deleted, and had the same name.
			earlier := *metav1.NewControllerRef(c.getPage("a"), pages.SchemeGroupVersion.WithKind("Page"))
			earlier.Name, earlier.UID = "c", "00000000-0000-4000-8000-000000000000"
			before := c.stray(kinds[i], "b")
			owned := c.stray(kinds[i], "c", earlier)
			for _, name := range []string{"b", "c"} {
				c.page(name, nil)
				c.notReady(name, pages.ReasonNameConflict)
				c.touch(name)
			}
			c.settle("d")
			c.untouched(k, before)
			c.untouched(k, owned)
			for _, name := range []string{"b", "c"} {
				c.delete(k, name)
				c.ready(name)
			}
		})
	}
	t.Behaviour("a Deployment that takes the name just before the Page's is created is left alone", func(b *check.B) {
		c := newCluster(b, work)
		var taken atomic.Pointer[appsv1.Deployment]
		c.operator.Intercept(func(request kube.Request) error {
			if taken.Load() == nil && request.Resource == "deployments" && kube.Writes(request) {
				taken.Store(c.stray(kinds[1], "a").(*appsv1.Deployment))
			}
			return nil
		})
		c.operator.Start()
		c.page("a", nil)
		c.notReady("a", pages.ReasonNameConflict)
		c.untouched(kinds[1], taken.Load())
	})
	t.Behaviour("a hostname that another record has is reported, and the Page gets it when it is free", func(b *check.B) {
		c := started(b, work)
		c.page("b", func(page *pages.Page) { page.Spec.Hostname = hostname("a") })
		c.notReady("b", pages.ReasonHostnameTaken)
		if record, _ := c.dns.find(hostname("a")); record.Service != "a."+c.namespace {
			b.Fatalf("the record of another Page leads to %s", record.Service)
		}
		c.remove()
		c.eventually(func() string {
			if c.getPage("a") != nil {
				return "the Page was deleted, and is still there"
			}
			return ""
		})
		c.ready("b")
		c.named(hostname("a"))
	})
}
