package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/operator"
	"example.com/workbook/shared/registry"
)

// The points that Goop's author listed as not working.
var _ = Describe("What did not work for Goop's author:", func() {
	It(`1. "missing cluster roles for daemonsets": they are generated from markers, and come with the deployment`, func(ctx SpecContext) {
		text, err := os.ReadFile("../../config/rbac/role.yaml")
		Expect(err).NotTo(HaveOccurred())
		var generated rbacv1.ClusterRole
		Expect(yaml.UnmarshalStrict(text, &generated)).To(Succeed())
		var live rbacv1.ClusterRole
		Expect(env.Client.Get(ctx, client.ObjectKey{Name: "goop-" + generated.Name}, &live)).To(Succeed())
		Expect(live.Rules).To(Equal(generated.Rules))
		for group, needs := range map[string][]string{
			"apps":          {"create daemonsets", "patch daemonsets", "delete daemonsets", "list daemonsets", "watch daemonsets"},
			"":              {"list pods", "watch pods"},
			"events.k8s.io": {"create events"},
		} {
			for _, need := range needs {
				verb, resource, _ := strings.Cut(need, " ")
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: env.Operator.User(),
					// A cluster-wide permission, so it is checked without a namespace.
					ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: verb},
				}}
				Expect(env.Client.Create(ctx, review)).To(Succeed())
				Expect(review.Status.Allowed).To(BeTrue(), "%s in %q: %s", need, group, review.Status.Reason)
			}
		}
	})

	It(`2. "the deployment needs registry prefix": a generated overlay sets it, for the worker's image too, and no file is edited`, func() {
		before := fingerprint("../../config")
		objects, err := deploy.Render(env.Stage.Dir, "", deploy.Images{
			"controller": "k3d-devregistry:5000/controller:latest", "busybox": "k3d-devregistry:5000/busybox:latest",
		})
		Expect(err).NotTo(HaveOccurred())
		container := deploymentOf(objects).Spec.Template.Spec.Containers[0]
		Expect(container.Image).To(Equal("k3d-devregistry:5000/controller:latest"))
		Expect(container.Env).To(ConsistOf(
			corev1.EnvVar{Name: "RELATED_IMAGE_OPERATOR", Value: "k3d-devregistry:5000/controller:latest"},
			corev1.EnvVar{Name: "RELATED_IMAGE_WORKER", Value: "k3d-devregistry:5000/busybox:latest"}))
		Expect(fingerprint("../../config")).To(Equal(before))
	})

	It(`2. "the deployment needs registry prefix": through a real registry, operator and workers are pulled with it`, Serial, Label(e2e.LabelContainers), func(ctx SpecContext) {
		r, err := registry.Start(ctx, env.Cluster)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(r.Close(ctx)).To(Succeed()) })
		images, err := env.PushImages(ctx, r.Host)
		Expect(err).NotTo(HaveOccurred())
		Expect(images).To(HaveEach(HavePrefix(r.Host + "/")))
		objects, err := env.Render(images)
		Expect(err).NotTo(HaveOccurred())
		Expect(deploy.Deploy(ctx, GinkgoWriter, env.Config, objects)).To(Succeed())
		DeferCleanup(redeploy)

		w := newTestEnv(ctx)
		goop := w.create("pulled", v1alpha1.GoopSpec{Cmd: greets})
		w.complete(goop, len(w.nodes()))
		w.expectImages(goop, images)
		for _, ref := range images {
			Expect(r.Pulled()).To(ContainElement(strings.TrimPrefix(ref, r.Host+"/")))
		}
	})

	It(`3. "not sure the order of deploy vs install": one deployment on an empty cluster is enough, and a second one changes nothing`, Serial, func(ctx SpecContext) {
		objects, err := env.Render(env.Images)
		Expect(err).NotTo(HaveOccurred())
		Expect(deploy.Undeploy(ctx, GinkgoWriter, env.Config, env.Stage.Dir, "")).To(Succeed())
		if !env.Cluster.RunsContainers() {
			Expect(env.Operator.Stop(ctx)).To(Succeed())
		}
		for _, object := range objects {
			err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())
			Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%s %s: %v", object.GetKind(), object.GetName(), err)
		}
		for range 2 {
			deployAll(ctx, objects)
		}
		w := newTestEnv(ctx)
		goop := w.create("fresh", v1alpha1.GoopSpec{Cmd: greets})
		w.complete(goop, len(w.nodes()))
	})

	It(`4. "push any other docker images (busybox, pause)": the deployment includes them, and pods use no other images`, func(ctx SpecContext) {
		w := newTestEnv(ctx)
		goop := w.create("images", v1alpha1.GoopSpec{Cmd: greets})
		w.complete(goop, len(w.nodes()))
		w.expectImages(goop, env.Images)
	})
})

// deployAll does what `make deploy` does on kind, and what the suite does on the embedded cluster.
func deployAll(ctx SpecContext, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	if env.Cluster.RunsContainers() {
		Expect(deploy.Deploy(ctx, GinkgoWriter, env.Config, objects)).To(Succeed())
		return
	}
	process, err := operator.Run(ctx, GinkgoWriter, operator.Options{
		Cluster: env.Cluster, StageDir: env.Stage.Dir, Images: env.Images, Args: env.Stage.OperatorArgs,
		Log: filepath.Join(env.Artifacts, "operator-fresh.log"),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(process.Stop(ctx)).To(Succeed())
	Expect(env.Operator.Restart(ctx)).To(Succeed())
}

// expectImages asserts that the pods of a Goop use only the operator's image and the default image for workers.
func (w *testEnv) expectImages(goop *v1alpha1.Goop, images deploy.Images) {
	GinkgoHelper()
	for _, pod := range w.pods(goop) {
		got := map[string]string{}
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			got[container.Name] = container.Image
		}
		Expect(got).To(Equal(map[string]string{
			"install": images["controller"], v1alpha1.WorkContainer: images["busybox"], "pause": images["controller"],
		}))
	}
}

func deploymentOf(objects []*unstructured.Unstructured) *appsv1.Deployment {
	GinkgoHelper()
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			deployment := &appsv1.Deployment{}
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment)).To(Succeed())
			return deployment
		}
	}
	Fail("there is no Deployment")
	return nil
}

// fingerprint returns a hash of all files in a directory.
func fingerprint(dir string) string {
	GinkgoHelper()
	var all bytes.Buffer
	Expect(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteString(path)
		all.Write(text)
		return err
	})).To(Succeed())
	sum := sha256.Sum256(all.Bytes())
	return hex.EncodeToString(sum[:])
}
