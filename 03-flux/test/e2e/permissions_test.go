package e2e

import (
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/internal/broker"
	"example.com/workbook/shared/audit"
)

var _ = Describe("Permissions:", func() {
	It("the operator's roles have none that it does not use, and lack none that it uses", Serial, func(ctx SpecContext) {
		env.ExpectExactPermissions(ctx, derived, func() {
			w := newTestEnv(ctx)
			flux := w.create("whole", v1alpha1.FluxSpec{Command: sh("sleep 600"), Size: 2, ActiveDeadlineSeconds: new(int64(600))})
			w.running(flux)
			// Another client changes the Service.
			service := serviceOf(flux)
			until(w, service, func(g Gomega, s *corev1.Service) {
				s.Spec.PublishNotReadyAddresses = false
				g.Expect(env.Client.Update(ctx, s)).To(Succeed())
			})
			until(w, service, func(g Gomega, s *corev1.Service) { g.Expect(s.Spec.PublishNotReadyAddresses).To(BeTrue()) })
			w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.ActiveDeadlineSeconds = new(int64(1)) })
			w.failed(flux, v1alpha1.ReasonDeadlineExceeded)
			w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.TTLSecondsAfterFinished = new(int32(0)) })
			w.gone(launched(flux)...)
		})
	})

	It("the operator gets and creates Secrets by name, and cannot list or watch them", func(ctx SpecContext) {
		requests, err := audit.Read(ctx, env.Cluster, audit.By(env.Operator.User()), audit.Resource("", "secrets"))
		Expect(err).NotTo(HaveOccurred())
		for _, request := range requests {
			Expect(request.Verb).To(BeElementOf("get", "create"))
			Expect(request.ObjectRef.Name).NotTo(BeEmpty())
		}
		operator := rest.CopyConfig(env.Config)
		operator.Impersonate = rest.ImpersonationConfig{UserName: env.Operator.User()}
		c, err := client.New(operator, client.Options{Scheme: env.Client.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		Expect(apierrors.IsForbidden(c.List(ctx, &corev1.SecretList{}))).To(BeTrue())
	})

	It("the certificate is in no event, log or object but its Secret", func(ctx SpecContext) {
		w := newTestEnv(ctx)
		flux := w.create("secretive", v1alpha1.FluxSpec{Command: sh("sleep 600"), Size: 2, Broker: &v1alpha1.Broker{LogLevel: new(int32(7))}})
		w.running(flux)
		var texts string
		// This is before the end, because the Job controller then deletes the running pods.
		if env.Cluster.RunsContainers() {
			for _, pod := range w.all(flux) {
				texts += w.log(pod)
			}
		}
		w.change(flux, func(spec *v1alpha1.FluxSpec) { spec.ActiveDeadlineSeconds = new(int64(1)) })
		w.failed(flux, v1alpha1.ReasonDeadlineExceeded)
		secret := secretOf(flux)
		w.there(secret)
		keys := keysOf(string(secret.Data[broker.CertificateFile]))
		Expect(keys).To(HaveLen(2))
		Expect(secret.Immutable).To(HaveValue(BeTrue()))

		log, err := env.Operator.Logs(ctx)
		Expect(err).NotTo(HaveOccurred())
		texts += log
		for _, list := range []client.ObjectList{
			&v1alpha1.FluxList{}, &v1alpha1.FluxSetupList{}, &batchv1.JobList{}, &corev1.PodList{},
			&corev1.ConfigMapList{}, &corev1.ServiceList{}, &eventsv1.EventList{},
		} {
			Expect(env.Client.List(ctx, list, client.InNamespace(w.namespace))).To(Succeed())
			text, err := json.Marshal(list)
			Expect(err).NotTo(HaveOccurred())
			texts += string(text)
		}
		for _, key := range keys {
			// A matcher would print the key.
			Expect(strings.Contains(texts, key)).To(BeFalse(), "a key is outside of its Secret")
		}
	})

	It("users may write Fluxes, and only read FluxSetups", func(ctx SpecContext) {
		w := newTestEnv(ctx)
		for _, role := range []string{"flux-operator-flux-editor-role", "flux-operator-fluxsetup-viewer-role"} {
			binding := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: role},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "user"}},
			}
			Expect(env.Client.Create(ctx, binding)).To(Succeed())
		}
		config := rest.CopyConfig(env.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "user"}
		user, err := client.New(config, client.Options{Scheme: env.Client.Scheme()})
		Expect(err).NotTo(HaveOccurred())

		flux := &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "theirs"}, Spec: v1alpha1.FluxSpec{Image: env.Prepared, Command: sh("exit 0")}}
		// The authorizer may observe the binding a moment later.
		Eventually(func() error { return user.Create(ctx, flux) }).Should(Succeed())
		until(w, setupOf(flux), func(g Gomega, setup *v1alpha1.FluxSetup) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(setup), setup)).To(Succeed())
		})
		setup := setupOf(flux)
		w.there(setup)
		setup.Spec.Suspend = true
		Expect(apierrors.IsForbidden(user.Update(ctx, setup))).To(BeTrue())
		Expect(apierrors.IsForbidden(user.Delete(ctx, setup))).To(BeTrue())
		Expect(apierrors.IsForbidden(user.Create(ctx, unownedSetup(metav1.ObjectMeta{Namespace: w.namespace, Name: "mine"})))).To(BeTrue())
	})
})

// keysOf are the values of the lines of a certificate that have a name ending with -key.
func keysOf(certificate string) []string {
	var keys []string
	for line := range strings.Lines(certificate) {
		name, value, _ := strings.Cut(line, "=")
		if strings.HasSuffix(strings.TrimSpace(name), "-key") {
			keys = append(keys, strings.Trim(strings.TrimSpace(value), `"`))
		}
	}
	return keys
}

// derived are permissions that no request shows, and what they are for.
var derived = map[string]string{
	"delete flux-framework.org/fluxsetups":            "owner references that another client has emptied are restored",
	"update flux-framework.org/fluxes/finalizers":     "blockOwnerDeletion in the owner references",
	"update flux-framework.org/fluxsetups/finalizers": "blockOwnerDeletion in the owner references",
	"update batch/jobs/finalizers":                    "blockOwnerDeletion in the owner references",
	"create flux-framework.org/fluxsetups":            "an apply that creates is a patch in the log, and needs both",
	"create /services":                                "an apply that creates is a patch in the log, and needs both",
	"patch events.k8s.io/events":                      "an Event that recurs within minutes is updated",
	"patch /events":                                   "an Event of leader election that recurs is updated too",
}
