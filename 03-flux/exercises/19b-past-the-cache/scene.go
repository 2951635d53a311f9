package cache

import (
	"context"
	"net/http"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	clientcache "k8s.io/client-go/tools/cache"

	"example.com/workbook/03-flux/exercises/internal/tasks"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const taskName = "backup"

// scene is a namespace with a task, its controller, and a cache that has what the check gives it.
type scene struct {
	b         *check.B
	entry     Entry
	namespace string
	client    kubernetes.Interface
	wire      *kube.Wire
	process   *kube.Process
	clients   tasks.Clients

	configMaps, jobs clientcache.Indexer
	// all are the Jobs that there were.
	all map[types.UID]bool

	mu     sync.Mutex
	before func()
}

// content is what a cache has.
type content struct {
	configMaps []corev1.ConfigMap
	jobs       []batchv1.Job
}

// newScene begins with a cache that has the task.
func newScene(b *check.B, entry Entry) *scene {
	s := &scene{
		b: b, entry: entry, namespace: kube.Namespace(b), client: kube.Client(b), wire: kube.NewWire(b), process: kube.NewProcess(b),
		configMaps: newIndexer(), jobs: newIndexer(), all: map[types.UID]bool{},
	}
	s.clients = s.clientsOf(s.wire.Client())
	s.wire.Before(s.intercept)
	s.create()
	s.cacheHas(s.live())
	return s
}

// create creates the task, as a user.
func (s *scene) create() {
	s.b.Event("a user creates the task, with attempt 1")
	_, err := s.client.CoreV1().ConfigMaps(s.namespace).Create(s.b.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: taskName}, Data: map[string]string{"attempt": "1"},
	}, metav1.CreateOptions{})
	s.must("creating a ConfigMap", err)
}

// delete deletes the task, as a user. What it owns is left until collect is called.
func (s *scene) delete() {
	s.b.Event("the user deletes the task")
	s.must("deleting a ConfigMap", s.client.CoreV1().ConfigMaps(s.namespace).Delete(s.b.Context(), taskName, metav1.DeleteOptions{}))
}

// collect is the garbage collector: it deletes what has owners, none of which is there, and then what that owned. What has a
// finalizer is only deleted once.
func (s *scene) collect() {
	s.b.Event("the garbage collector deletes what the deleted task owned")
	for collected := true; collected; {
		collected = false
		now, there := s.live(), map[types.UID]bool{}
		isThere := func(owner metav1.OwnerReference) bool { return there[owner.UID] }
		for _, object := range now.configMaps {
			there[object.UID] = true
		}
		for _, job := range now.jobs {
			there[job.UID] = true
		}
		for _, object := range now.configMaps {
			if owners := object.OwnerReferences; len(owners) > 0 && object.DeletionTimestamp == nil && !slices.ContainsFunc(owners, isThere) {
				s.must("deleting a ConfigMap", s.client.CoreV1().ConfigMaps(s.namespace).Delete(s.b.Context(), object.Name, metav1.DeleteOptions{}))
				collected = true
			}
		}
		for _, job := range now.jobs {
			if owners := job.OwnerReferences; len(owners) > 0 && job.DeletionTimestamp == nil && !slices.ContainsFunc(owners, isThere) {
				s.deleteJob(job.Name)
				collected = true
			}
		}
	}
}

func newIndexer() clientcache.Indexer {
	return clientcache.NewIndexer(clientcache.MetaNamespaceKeyFunc, clientcache.Indexers{clientcache.NamespaceIndex: clientcache.MetaNamespaceIndexFunc})
}

func (s *scene) clientsOf(client kubernetes.Interface) tasks.Clients {
	return tasks.Clients{
		CachedConfigMaps: corelisters.NewConfigMapLister(s.configMaps).ConfigMaps(s.namespace),
		CachedJobs:       batchlisters.NewJobLister(s.jobs).Jobs(s.namespace),
		ConfigMaps:       client.CoreV1().ConfigMaps(s.namespace),
		Jobs:             client.BatchV1().Jobs(s.namespace),
	}
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// live is what the API server has.
func (s *scene) live() content {
	configMaps, err := s.client.CoreV1().ConfigMaps(s.namespace).List(s.b.Context(), metav1.ListOptions{})
	s.must("listing ConfigMaps", err)
	jobs, err := s.client.BatchV1().Jobs(s.namespace).List(s.b.Context(), metav1.ListOptions{})
	s.must("listing Jobs", err)
	return content{configMaps.Items, jobs.Items}
}

// cached is what the cache has.
func (s *scene) cached() content {
	var c content
	for _, object := range s.configMaps.List() {
		c.configMaps = append(c.configMaps, *object.(*corev1.ConfigMap).DeepCopy())
	}
	for _, object := range s.jobs.List() {
		c.jobs = append(c.jobs, *object.(*batchv1.Job).DeepCopy())
	}
	return c
}

func (s *scene) cacheHas(c content) {
	var configMaps, jobs []any
	for i := range c.configMaps {
		configMaps = append(configMaps, &c.configMaps[i])
	}
	for i := range c.jobs {
		jobs = append(jobs, &c.jobs[i])
	}
	s.b.Event("the cache has %d ConfigMaps and %d Jobs", len(configMaps), len(jobs))
	s.must("filling the cache", s.configMaps.Replace(configMaps, ""))
	s.must("filling the cache", s.jobs.Replace(jobs, ""))
}

// refreshConfigMaps brings only that of the ConfigMaps up to date.
func (s *scene) refreshConfigMaps() {
	c := s.live()
	c.jobs = s.cached().jobs
	s.cacheHas(c)
}

// intercept is called for each request of the controller.
func (s *scene) intercept(request kube.Request, r *http.Request) (*http.Response, error) {
	if kube.Writes(request) {
		s.mu.Lock()
		before := s.before
		s.before = nil
		s.mu.Unlock()
		if before != nil {
			before()
		}
	}
	return s.process.Before(request, r)
}

// otherReplicaBeforeTheFirstWrite lets something happen just before the first write, and then another replica reconcile.
func (s *scene) otherReplicaBeforeTheFirstWrite(happens func()) {
	s.before = func() {
		happens()
		s.b.Event("  another replica reconciles the task")
		err := s.entry(s.b.Context(), s.clientsOf(s.client), taskName)
		s.b.Event("  the other replica returned the error: %v", err)
		s.note()
	}
}

// call starts the controller, and calls Reconcile once, with the cache as it is.
func (s *scene) call() error {
	s.b.Event("Reconcile")
	err := s.process.Run(func(ctx context.Context) error { return s.entry(ctx, s.clients, taskName) })
	if err != nil {
		s.b.Event("  it returned the error: %v", err)
	}
	s.note()
	return err
}

// note remembers the Jobs that there are.
func (s *scene) note() {
	for _, job := range s.live().jobs {
		s.all[job.UID] = true
	}
}

// settle brings the cache up to date and calls Reconcile, until it returns no error and writes nothing.
func (s *scene) settle() {
	for range most {
		s.cacheHas(s.live())
		seen := len(s.wire.Requests())
		if err := s.call(); err == nil && !slices.ContainsFunc(s.wire.Requests()[seen:], kube.Writes) {
			return
		}
	}
	s.b.Fatalf("after %d calls there is still no end: the last one wrote something, or returned an error", most)
}

// quiet calls Reconcile when nothing is to be done.
func (s *scene) quiet(state string) {
	s.cacheHas(s.live())
	seen := len(s.wire.Requests())
	_ = s.call()
	if sent := s.wire.Requests()[seen:]; len(sent) > 0 {
		s.b.Fatalf("the task is %s, the cache is up to date, and this was sent: %s", state, sent[0])
	}
}

// attempt is what a user does who wants another one.
func (s *scene) attempt(number string) {
	s.b.Event("the user sets attempt %s", number)
	_, err := s.client.CoreV1().ConfigMaps(s.namespace).Patch(s.b.Context(), taskName, types.MergePatchType,
		[]byte(`{"data":{"attempt":"`+number+`"}}`), metav1.PatchOptions{})
	s.must("changing the task", err)
}

// deleteJobs deletes all Jobs, as a user.
func (s *scene) deleteJobs() {
	s.b.Event("the user deletes the Job")
	for _, job := range s.live().jobs {
		s.deleteJob(job.Name)
	}
}

func (s *scene) deleteJob(name string) {
	background := metav1.DeletePropagationBackground
	s.must("deleting a Job",
		s.client.BatchV1().Jobs(s.namespace).Delete(s.b.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}))
}

func (s *scene) task() *corev1.ConfigMap {
	task, err := s.client.CoreV1().ConfigMaps(s.namespace).Get(s.b.Context(), taskName, metav1.GetOptions{})
	s.must("reading the task", err)
	return task
}

// expectNotOlder checks that the Job of an older task is not taken for that of the task.
func (s *scene) expectNotOlder() {
	task := s.task()
	isOurs := func(job batchv1.Job) bool { return metav1.IsControlledBy(&job, task) }
	if state := task.Data["state"]; state != "" && !slices.ContainsFunc(s.live().jobs, isOurs) {
		s.b.Fatalf("the task has had no Job, only an older one of the same name has, and the state is %q", state)
	}
}

// expect checks how many Jobs there were in all, and the state of the task.
func (s *scene) expect(jobs int, state string) {
	object := s.task()
	for _, job := range s.live().jobs {
		if !metav1.IsControlledBy(&job, object) {
			s.b.Fatalf("the Job is not controlled by the task")
		}
	}
	got := object.Data["state"]
	switch {
	case len(s.all) > jobs:
		s.b.Fatalf("there were %d Jobs in %s attempts, and the state is %q", len(s.all), object.Data["attempt"], got)
	case len(s.all) < jobs:
		s.b.Fatalf("attempt %s has had no Job, and the state is %q", object.Data["attempt"], got)
	case got != state:
		s.b.Fatalf("the state is %q, and should be %s", got, state)
	}
}
