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

// manage runs the controller with its watches and its cache, under a user who may do what config/rbac says and no
// more, until stop is called.
func (f *field) manage(t *testing.T) (user string, stop func()) {
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

// writes counts, by kind, what a user has sent, from the API server's own audit log. Reads are not in it.
func (f *field) writes(t *testing.T, user string) map[string]int {
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

// submit creates the Goop, and waits for its DaemonSets.
func (f *field) submit(daemonSets int, change ...func(*v1alpha1.GoopSpec)) {
	goop := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec(change...)}
	f.Expect(f.client.Create(f.ctx, goop)).To(Succeed())
	f.Eventually(f.daemonSets, watchTimeout).Should(HaveLen(daemonSets))
}

// says waits for a condition of the Goop to have a reason.
func (f *field) says(kind, reason string) {
	f.Eventually(func() string { return conditionOf(f.goop().Status.Conditions, kind).Reason }, watchTimeout).Should(Equal(reason), kind)
}

// From its creation to its end a Goop costs its DaemonSets, four writes, two Events, and one write a second at most,
// however many pods report. At rest it costs nothing, nor after a restart of the operator. The TTL of 0 and the
// deletion need no other wake-up.
func TestWriteBudget(t *testing.T) {
	t.Parallel()
	nodes := make([]string, 12)
	for i := range nodes {
		nodes[i] = fmt.Sprintf("n%02d", i)
	}
	f := newField(t, nodes...)
	user, stop := f.manage(t)
	start := time.Now()
	f.submit(2, workers(24))
	f.playDaemonSets()
	for _, place := range f.places() {
		f.kubelet(place, isRunning)
	}
	for _, place := range f.places() {
		f.kubelet(place, isOver(0, "done"))
	}
	f.says(v1alpha1.ConditionComplete, v1alpha1.ReasonSucceeded)
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
	f.Consistently(func() map[string]int { return f.writes(t, user) }, 3*time.Second, 200*time.Millisecond).Should(Equal(writes), "at rest")

	stop()
	user, _ = f.manage(t)
	f.Consistently(func() map[string]int { return f.writes(t, user) }, 3*time.Second, 200*time.Millisecond).Should(BeEmpty(), "after a restart")
	goop := f.goop()
	goop.Spec.TTLSecondsAfterFinished = new(int32(0))
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.Eventually(f.daemonSets, watchTimeout).Should(BeEmpty())
	f.Eventually(f.shards, watchTimeout).Should(BeEmpty())
}

// Everything that the operator does, under its own role: what the role lacks fails here. And each thing that the role
// allows to be written is done here: what it has too much is told.
func TestRoleIsWhatIsUsed(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
	user, _ := f.manage(t)
	f.submit(1, cleanup)
	f.playDaemonSets()
	f.kubelet("a/0", isRunning)
	f.Eventually(func() map[string]bool { return f.record().Begun }, watchTimeout).Should(HaveKey(f.node("a")))
	f.kubelet("a/0", isOver(0, ""))
	f.says(v1alpha1.ConditionRunning, v1alpha1.ReasonWorking)
	f.Eventually(func() int32 { return f.goop().Status.Succeeded }, watchTimeout).Should(Equal(int32(1)))
	f.leaveQuietly("b")
	f.says(v1alpha1.ConditionComplete, v1alpha1.ReasonSucceeded)
	f.Eventually(func() bool { return f.daemonSets()["job-0"].Spec.Template.Spec.Affinity != nil }, watchTimeout).Should(BeTrue())
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.Eventually(func() map[string]*appsv1.DaemonSet {
		f.playDaemonSets()
		return f.daemonSets()
	}, watchTimeout).Should(HaveKey("job-cleanup"))
	f.playDaemonSets()
	f.kubelet("a/cleanup", isOver(0, ""))
	f.Eventually(f.gone, watchTimeout).Should(BeTrue())
	f.Expect(f.client.Delete(f.ctx, f.daemonSets()["job-cleanup"])).To(Succeed())
	for _, shard := range f.shards() {
		f.Expect(f.client.Delete(f.ctx, &shard)).To(Succeed())
	}

	// A record goes after the TTL only.
	f.Eventually(func() error {
		return f.client.Create(f.ctx, &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec(ttl(0))})
	}, watchTimeout).Should(Succeed())
	f.Eventually(f.daemonSets, watchTimeout).Should(HaveKey("job-0"))
	f.playDaemonSets()
	f.kubelet("a/0", isOver(0, ""))
	f.Eventually(f.shards, watchTimeout).Should(BeEmpty())

	used := map[string]bool{}
	for what := range f.writes(t, user) {
		used[strings.TrimSuffix(what, "/")] = true
	}
	f.Expect(used).To(Equal(allowedWrites(f)))
}

// allowedWrites are the writes that config/rbac allows, but for what is derived: goops/finalizers is asked for by
// blockOwnerDeletion, and a second Event of a kind is a patch.
func allowedWrites(f *field) map[string]bool {
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

// leaveQuietly takes a node and its pods away, and leaves the rest to the manager.
func (f *field) leaveQuietly(short string) {
	f.Expect(f.client.Delete(f.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.node(short)}})).To(Succeed())
	f.playDaemonSets()
}

// Nothing but the event itself wakes the operator: a node joins, a foreign object goes.
func TestWakeUps(t *testing.T) {
	t.Parallel()
	f := newField(t)
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "job-record-0", Namespace: f.namespace}}
	f.Expect(f.client.Create(f.ctx, foreign)).To(Succeed())
	f.manage(t)
	f.submit(0, workers(1))
	f.says(v1alpha1.ConditionRunning, v1alpha1.ReasonNameConflict)
	f.Expect(f.client.Delete(f.ctx, foreign)).To(Succeed())
	f.says(v1alpha1.ConditionRunning, v1alpha1.ReasonNoEligibleNodes)
	f.join("a")
	f.says(v1alpha1.ConditionRunning, v1alpha1.ReasonWorking)
	f.Eventually(f.daemonSets, watchTimeout).Should(HaveLen(1))
	f.playDaemonSets()
	f.kubelet("a/0", isRunning)
	f.Eventually(func() int32 { return f.goop().Status.Running }, watchTimeout).Should(Equal(int32(1)))
}
