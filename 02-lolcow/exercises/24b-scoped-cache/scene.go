package scopedcache

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// The label of what is the operator's own, and of what is not.
const ours, theirs = "lolcow", "sheep"

// scene is a namespace, and a manager with the reader's options.
type scene struct {
	b         *check.B
	client    client.Client
	wire      *kube.Wire
	namespace string
	mgr       manager.Manager
}

func newScene(b *check.B) *scene {
	s := &scene{b: b, wire: kube.NewWire(b), namespace: kube.Namespace(b)}
	var err error
	s.client, err = client.New(kube.Config(b), client.Options{Scheme: lab.Scheme()})
	s.must("making a client", err)
	return s
}

func (s *scene) must(what string, err error) {
	if err != nil {
		s.b.Fatalf("%s: %v", what, err)
	}
}

// start starts the manager, with watches on Pods and Deployments as a controller has them.
func (s *scene) start(entry Entry) {
	s.b.Event("the manager starts")
	ctrl.SetLogger(logr.Discard())
	options := ctrl.Options{Scheme: lab.Scheme(), Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard()}
	options.Cache, options.Client = entry()
	// Other checks use this API server, too.
	options.Cache.DefaultNamespaces = map[string]cache.Config{s.namespace: {}}
	var err error
	s.mgr, err = ctrl.NewManager(s.wire.Config(), options)
	s.must("making a manager", err)
	ctx, cancel := context.WithCancel(s.b.Context())
	stopped := s.b.Go(func() {
		if err := s.mgr.Start(ctx); err != nil {
			s.b.Errorf("the manager returned an error: %v", err)
		}
	})
	s.b.Cleanup(func() { cancel(); <-stopped })
	syncing, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	// Before the cache has started, GetInformer does not wait for what it is asked for.
	if !s.mgr.GetCache().WaitForCacheSync(syncing) {
		s.b.Fatalf("the cache does not start")
	}
	for _, object := range []client.Object{&corev1.Pod{}, &appsv1.Deployment{}} {
		_, err := s.mgr.GetCache().GetInformer(syncing, object)
		s.must("filling the cache", err)
	}
}

func (s *scene) meta(name, app string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: s.namespace, Labels: map[string]string{"app": app},
		Annotations: map[string]string{"example.com/notes": "moo"},
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "example.com/none"}}}
}

// createPod creates a Pod, and does what a kubelet does that cannot pull its image.
func (s *scene) createPod(name, app string) {
	pod := &corev1.Pod{ObjectMeta: s.meta(name, app), Spec: podSpec()}
	s.must("creating a Pod", s.client.Create(s.b.Context(), pod))
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "server", Image: "example.com/none", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
	}}
	s.must("writing the status of a Pod", s.client.Status().Update(s.b.Context(), pod))
}

// createDeployment creates a Deployment, of which one replica is available.
func (s *scene) createDeployment(name, app string) {
	labels := map[string]string{"app": app}
	deployment := &appsv1.Deployment{ObjectMeta: s.meta(name, app), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
	}}
	if app != ours {
		deployment.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Sheep", Name: "dolly", UID: "1"}}
	}
	s.must("creating a Deployment", s.client.Create(s.b.Context(), deployment))
	deployment.Status.Replicas, deployment.Status.AvailableReplicas, deployment.Status.ReadyReplicas = 1, 1, 1
	s.must("writing the status of a Deployment", s.client.Status().Update(s.b.Context(), deployment))
}

func (s *scene) secret(value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token", Namespace: s.namespace}, Data: map[string][]byte{"token": []byte(value)},
	}
}

func (s *scene) createSecret() {
	s.must("creating a Secret", s.client.Create(s.b.Context(), s.secret("one")))
}

func (s *scene) changeSecret() {
	s.b.Event("the Secret is changed")
	s.must("changing a Secret", s.client.Update(s.b.Context(), s.secret("two")))
}

func (s *scene) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: name}
}

// expectOwn waits until the operator reads its Deployment and its Pod.
func (s *scene) expectOwn() { s.b.Eventually(patience, s.own) }

// own reads the Deployment and the Pod of the operator, as it does, and says what is missing.
func (s *scene) own() string {
	var deployment appsv1.Deployment
	if err := s.mgr.GetClient().Get(s.b.Context(), s.key("cow"), &deployment); err != nil {
		return fmt.Sprintf("reading the Deployment of the operator: %v", err)
	}
	containers := deployment.Spec.Template.Spec.Containers
	if len(containers) != 1 || deployment.Status.AvailableReplicas != 1 || len(deployment.Annotations) != 1 {
		return "the Deployment of the operator has no spec, no status or no annotations in the cache"
	}
	var pods corev1.PodList
	err := s.mgr.GetClient().List(s.b.Context(), &pods, client.InNamespace(s.namespace), client.MatchingLabels{"app": ours})
	if err != nil || len(pods.Items) != 1 {
		return fmt.Sprintf("the operator has one Pod, and reads %d: %v", len(pods.Items), err)
	}
	pod := pods.Items[0]
	if len(pod.Spec.Containers) != 1 || len(pod.Status.ContainerStatuses) != 1 || len(pod.Annotations) != 1 {
		return "the Pod of the operator has no spec, no status or no annotations in the cache"
	}
	return ""
}

// expectConflict waits until the operator sees the Deployment of another, and whose it is.
func (s *scene) expectConflict(name string) {
	s.b.Eventually(patience, func() string {
		var deployment appsv1.Deployment
		err := s.mgr.GetClient().Get(s.b.Context(), s.key(name), &deployment)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Sprintf("there is a Deployment %s of another, and the operator reads that there is none", name)
		case err != nil:
			return fmt.Sprintf("reading a Deployment of another: %v", err)
		case deployment.UID == "" || deployment.Labels["app"] != theirs || len(deployment.OwnerReferences) != 1:
			return "the Deployment of another has no UID, no labels or no owner in the cache"
		}
		return ""
	})
}

// expectSecret waits until the operator reads this token.
func (s *scene) expectSecret(want string) {
	s.b.Eventually(patience, func() string { return s.readSecret(want) })
}

// readSecret reads the Secret, as the operator does, and says what is wrong with it.
func (s *scene) readSecret(want string) string {
	ctx, cancel := context.WithTimeout(s.b.Context(), time.Minute)
	defer cancel()
	var secret corev1.Secret
	if err := s.mgr.GetClient().Get(ctx, s.key("token"), &secret); err != nil {
		return fmt.Sprintf("reading the Secret: %v", err)
	}
	if got := string(secret.Data["token"]); got != want {
		return fmt.Sprintf("the Secret has the token %q, and the operator reads %q", want, got)
	}
	return ""
}

// expectReducedPods reads what the cache has of the Pods of others.
func (s *scene) expectReducedPods() {
	var pods corev1.PodList
	s.must("listing what is in the cache", s.mgr.GetCache().List(s.b.Context(), &pods, client.InNamespace(s.namespace)))
	for _, pod := range pods.Items {
		s.expectReduced(&pod, &corev1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: identity(pod.ObjectMeta)}, "the Pod sheep")
	}
}

// expectReducedDeployments reads what the cache has of the Deployments of others.
func (s *scene) expectReducedDeployments() {
	var all appsv1.DeploymentList
	s.must("listing what is in the cache", s.mgr.GetCache().List(s.b.Context(), &all, client.InNamespace(s.namespace)))
	for _, one := range all.Items {
		s.expectReduced(&one, &appsv1.Deployment{TypeMeta: one.TypeMeta, ObjectMeta: identity(one.ObjectMeta)}, "the Deployment sheep")
	}
}

// identity is metadata without what may take memory.
func identity(metadata metav1.ObjectMeta) metav1.ObjectMeta {
	metadata.Annotations, metadata.ManagedFields = nil, nil
	return metadata
}

// expectReduced compares an object of another in the cache with what is left of it without its contents.
func (s *scene) expectReduced(object, reduced client.Object, what string) {
	if object.GetName() != "cow" && !equality.Semantic.DeepEqual(object, reduced) {
		s.b.Fatalf("%s of another is in the cache with what the operator does not read: its annotations, managedFields, spec or status", what)
	}
}
