package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/api/v1beta1"
	"example.com/workbook/shared/expect"
)

func init() {
	derived["create /secrets"] = "the Secret of the certificate is there"
	derived["update /secrets"] = "the certificate is renewed after two months"
	derived["patch apiextensions.k8s.io/customresourcedefinitions"] = "the caBundle is there"
}

// bothVersions are specs for make e2e E2E_FLAGS=-overlay=conversion.
func bothVersions() {
	var betaClient client.Client

	BeforeEach(func() {
		scheme := runtime.NewScheme()
		Expect(v1beta1.AddToScheme(scheme)).To(Succeed())
		var err error
		betaClient, err = client.New(env.Config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
	})

	It("show the same Lolcow, and keep what the other one does not show", func(ctx SpecContext) {
		beta := &v1beta1.Lolcow{
			ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(ctx), Name: "cow"},
			Spec: v1beta1.LolcowSpec{
				Greetings: []string{"Moo", "Baa"},
				Ports:     []v1beta1.LolcowPort{{Name: "side", NodePort: new(int32(30061))}, {Name: v1beta1.PagePort, NodePort: new(int32(30062))}},
			},
		}
		Eventually(ctx, func() error { return betaClient.Create(ctx, beta.DeepCopy()) }).WithTimeout(expect.Soon).
			Should(Succeed(), "the API server has the caBundle a moment after the operator is ready")
		alpha := &v1alpha1.Lolcow{ObjectMeta: beta.ObjectMeta}
		expectServing(ctx, alpha)
		Expect(alpha.Status.Greeting).To(Equal("Moo"))
		Expect(alpha.Status.Port).To(Equal(int32(30062)))
		if env.Cluster.RunsContainers() {
			expectGreeting(ctx, 30062, "Moo")
		}

		change(ctx, alpha, func(spec *v1alpha1.LolcowSpec) { spec.Greeting = "Mee" })
		expectServing(ctx, alpha)
		Expect(betaClient.Get(ctx, client.ObjectKeyFromObject(beta), beta)).To(Succeed())
		Expect(beta.Spec.Greetings).To(Equal([]string{"Mee", "Baa"}))
		Expect(beta.Spec.Ports).To(HaveLen(2))
		Expect(beta.Status.Greetings).To(Equal([]string{"Mee"}))
	})

	// What the operator reconciles is stored, so it needs no converter of its own to start.
	It("need the operator, but for the version that is stored", Serial, func(ctx SpecContext) {
		alpha := create(ctx, env.Namespace(ctx), "cow", v1alpha1.LolcowSpec{Greeting: "Moo"})
		expectServing(ctx, alpha)
		getBeta := func() error { return betaClient.Get(ctx, client.ObjectKeyFromObject(alpha), &v1beta1.Lolcow{}) }
		Eventually(ctx, getBeta).WithTimeout(expect.Soon).Should(Succeed())

		Expect(env.Operator.Stop(ctx)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Operator.Start(ctx)).To(Succeed()) })
		Expect(getBeta()).To(MatchError(ContainSubstring("conversion webhook for my.domain/v1alpha1, Kind=Lolcow failed")))
		refresh(ctx, alpha)
		Expect(env.Operator.Start(ctx)).To(Succeed())
		Eventually(ctx, getBeta).WithTimeout(expect.Soon).Should(Succeed())
	})
}
