package controller

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// manage runs the controller with its watches and its cache until stop is called. Its user has only the permissions of
// config/rbac.
func (f *goopTestEnv) manage(t *testing.T) (user string, stop func()) {
	t.Helper()
	user = fmt.Sprintf("operator-of-%s-%d", f.namespace, time.Now().UnixNano())
	f.clock.SetTime(time.Now())
	added, err := apiServer(t).env.AddUser(envtest.User{Name: user}, nil)
	f.Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	f.Expect(err).NotTo(HaveOccurred())
	var role rbacv1.ClusterRole
	f.Expect(yaml.Unmarshal(text, &role)).To(Succeed())
	role.Name = user
	f.Expect(f.client.Create(f.ctx, &role)).To(Succeed())
	f.Expect(f.client.Create(f.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
	restConfig := rest.CopyConfig(added.Config())
	restConfig.QPS = -1
	cacheOptions := CacheOptions()
	cacheOptions.DefaultNamespaces = map[string]cache.Config{f.namespace: {}}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:     scheme,
		Cache:      cacheOptions,
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Logger:     testr.New(t),
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	f.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.ctx))
	reconciler := NewGoopReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("goop-controller"), clock.RealClock{}, testImages, false)
	f.Expect(reconciler.SetupWithManager(ctx, mgr, ctrlcontroller.Options{MaxConcurrentReconciles: 2})).To(Succeed())
	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return user, stop
}

// writes counts the writes of a user by kind, from the API server's audit log, which has no reads.
func (f *goopTestEnv) writes(t *testing.T, user string) map[string]int {
	t.Helper()
	log, err := os.Open(apiServer(t).auditLog)
	f.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = log.Close() }()
	counts := map[string]int{}
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Subresource string }
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.User.Username == user {
			counts[fmt.Sprintf("%s %s/%s", line.Verb, line.ObjectRef.Resource, line.ObjectRef.Subresource)]++
		}
	}
	return counts
}

// submit creates the Goop, and waits until its DaemonSets exist.
func (f *goopTestEnv) submit(daemonSets int, change ...func(*v1alpha1.GoopSpec)) {
	goop := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec(change...)}
	f.Expect(f.client.Create(f.ctx, goop)).To(Succeed())
	f.Eventually(f.daemonSets, watchTimeout).Should(HaveLen(daemonSets))
}

// waitForReason waits until a condition of the Goop has a reason.
func (f *goopTestEnv) waitForReason(kind, reason string) {
	f.Eventually(func() string { return conditionOf(f.goop().Status.Conditions, kind).Reason }, watchTimeout).Should(Equal(reason), kind)
}

// For a Goop, from its creation to its end, the operator writes its DaemonSets, sends two Events, makes four more writes,
// and besides at most one write a second, however many pods report. In steady state and after a restart it writes
// nothing. A TTL of 0 and the deletion trigger no further reconciliations.
func TestWriteBudget(t *testing.T) {
	t.Parallel()
	nodes := make([]string, 12)
	for i := range nodes {
		nodes[i] = fmt.Sprintf("n%02d", i)
	}
	f := newGoopTestEnv(t, nodes...)
	user, stop := f.manage(t)
	start := time.Now()
	f.submit(2, workers(24))
	f.simulateDaemonSets()
	for _, place := range f.places() {
		f.kubelet(place, isRunning)
	}
	for _, place := range f.places() {
		f.kubelet(place, hasFinished(0, "done"))
	}
	f.waitForReason(v1alpha1.ConditionComplete, v1alpha1.ReasonSucceeded)
	seconds := int(time.Since(start).Seconds()) + 1

	f.Eventually(func() map[string]int { return f.writes(t, user) }, watchTimeout).Should(HaveKeyWithValue("create events/", 2))
	writes := f.writes(t, user)
	total := 0
	for _, n := range writes {
		total += n
	}
	f.Expect(total).To(BeNumerically("<=", 2+4+2+seconds), "%v", writes)
	f.Expect(writes).To(HaveKeyWithValue("create daemonsets/", 2))
	f.Expect(writes).NotTo(HaveKey("patch daemonsets/"))
	t.Logf("%d writes in %d s: %v", total, seconds, writes)
	f.Consistently(func() map[string]int { return f.writes(t, user) }, 3*time.Second, 200*time.Millisecond).Should(Equal(writes), "in steady state")

	stop()
	user, _ = f.manage(t)
	f.Consistently(func() map[string]int { return f.writes(t, user) }, 3*time.Second, 200*time.Millisecond).Should(BeEmpty(), "after a restart")
	goop := f.goop()
	goop.Spec.TTLSecondsAfterFinished = new(int32(0))
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.Eventually(f.daemonSets, watchTimeout).Should(BeEmpty())
	f.Eventually(f.shards, watchTimeout).Should(BeEmpty())
}

// The test does everything that the operator does, with the operator's own role. A missing permission makes it fail, and
// so does a permission to write that is not used.
func TestRoleIsLeastPrivilege(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	user, _ := f.manage(t)
	f.submit(1, cleanup)
	f.simulateDaemonSets()
	f.kubelet("a/0", isRunning)
	f.Eventually(func() map[string]bool { return f.record().Begun }, watchTimeout).Should(HaveKey(f.node("a")))
	f.kubelet("a/0", hasFinished(0, ""))
	f.waitForReason(v1alpha1.ConditionRunning, v1alpha1.ReasonWorking)
	f.Eventually(func() int32 { return f.goop().Status.Succeeded }, watchTimeout).Should(Equal(int32(1)))
	f.leaveQuietly("b")
	f.waitForReason(v1alpha1.ConditionComplete, v1alpha1.ReasonSucceeded)
	f.Eventually(func() bool { return f.daemonSets()["job-0"].Spec.Template.Spec.Affinity != nil }, watchTimeout).Should(BeTrue())
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.Eventually(func() map[string]*appsv1.DaemonSet {
		f.simulateDaemonSets()
		return f.daemonSets()
	}, watchTimeout).Should(HaveKey("job-cleanup"))
	f.simulateDaemonSets()
	f.kubelet("a/cleanup", hasFinished(0, ""))
	f.Eventually(f.gone, watchTimeout).Should(BeTrue())
	f.Expect(f.daemonSets()).To(BeEmpty())
	for _, shard := range f.shards() {
		f.Expect(f.client.Delete(f.ctx, &shard)).To(Succeed())
	}

	// Only after the TTL is a record deleted.
	f.Eventually(func() error {
		return f.client.Create(f.ctx, &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec(ttl(0))})
	}, watchTimeout).Should(Succeed())
	f.Eventually(f.daemonSets, watchTimeout).Should(HaveKey("job-0"))
	f.simulateDaemonSets()
	f.kubelet("a/0", hasFinished(0, ""))
	f.Eventually(f.shards, watchTimeout).Should(BeEmpty())

	used := map[string]bool{}
	for what := range f.writes(t, user) {
		used[strings.TrimSuffix(what, "/")] = true
	}
	f.Expect(used).To(Equal(allowedWrites(f)))
}

// allowedWrites are the writes that config/rbac permits, except derived permissions: goops/finalizers is needed for
// blockOwnerDeletion, and a repeated Event is a patch.
func allowedWrites(f *goopTestEnv) map[string]bool {
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	f.Expect(err).NotTo(HaveOccurred())
	var role rbacv1.ClusterRole
	f.Expect(yaml.Unmarshal(text, &role)).To(Succeed())
	allowed := map[string]bool{}
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				switch what := verb + " " + resource; {
				case verb == "get" || verb == "list" || verb == "watch", resource == "goops/finalizers", what == "patch events":
				default:
					allowed[what] = true
				}
			}
		}
	}
	return allowed
}

// leaveQuietly deletes a node and its pods, and leaves everything else to the manager.
func (f *goopTestEnv) leaveQuietly(short string) {
	f.Expect(f.client.Delete(f.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.node(short)}})).To(Succeed())
	f.simulateDaemonSets()
}

// A reconciliation is triggered only by the event itself: a node joins, or an object that is not owned by the Goop is
// deleted.
func TestEventsTriggerReconciliations(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t)
	notOwned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "job-record-0", Namespace: f.namespace}}
	f.Expect(f.client.Create(f.ctx, notOwned)).To(Succeed())
	f.manage(t)
	f.submit(0, workers(1))
	f.waitForReason(v1alpha1.ConditionRunning, v1alpha1.ReasonNameConflict)
	f.Expect(f.client.Delete(f.ctx, notOwned)).To(Succeed())
	f.waitForReason(v1alpha1.ConditionRunning, v1alpha1.ReasonNoEligibleNodes)
	f.join("a")
	f.waitForReason(v1alpha1.ConditionRunning, v1alpha1.ReasonWorking)
	f.Eventually(f.daemonSets, watchTimeout).Should(HaveLen(1))
	f.simulateDaemonSets()
	f.kubelet("a/0", isRunning)
	f.Eventually(func() int32 { return f.goop().Status.Running }, watchTimeout).Should(Equal(int32(1)))
}

// No pod exists when the Goop is suspended. That the DaemonSet controller has observed the suspension is the only event.
func TestObservedSuspensionTriggersAReconciliation(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.manage(t)
	f.submit(1)
	f.waitForReason(v1alpha1.ConditionRunning, v1alpha1.ReasonWorking)
	f.suspend()
	f.waitForReason(v1alpha1.ConditionSuspended, v1alpha1.ReasonSuspending)
	f.waitForSteadyState()
	f.expect(v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	f.observeDaemonSets(f.daemonSets())
	f.waitForReason(v1alpha1.ConditionSuspended, v1alpha1.ReasonSuspended)
}

// waitForSteadyState waits until all events of the operator's own writes have arrived.
func (f *goopTestEnv) waitForSteadyState() {
	f.Consistently(f.goop, 2*time.Second).Should(HaveField("ResourceVersion", f.goop().ResourceVersion))
}

// Another client removes the owner of the DaemonSet, and adds it again. The change of the owner references is the only
// event.
func TestChangedOwnersTriggerReconciliations(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.manage(t)
	f.submit(1)
	f.waitForReason(v1alpha1.ConditionRunning, v1alpha1.ReasonWorking)
	f.waitForSteadyState()
	daemonSet := f.daemonSets()["job-0"]
	ours := daemonSet.OwnerReferences
	daemonSet.OwnerReferences = nil
	f.Expect(f.client.Update(f.ctx, daemonSet)).To(Succeed())
	f.waitForReason(v1alpha1.ConditionRunning, v1alpha1.ReasonNameConflict)
	f.waitForSteadyState()
	daemonSet.OwnerReferences = ours
	f.Expect(f.client.Update(f.ctx, daemonSet)).To(Succeed())
	f.waitForReason(v1alpha1.ConditionRunning, v1alpha1.ReasonWorking)
}
