package v1alpha1_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/generated/clientset/versioned"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// strictly is `kubectl apply --validate=strict`: the API server rejects an unknown field.
var strictly = metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}

// TestValidation has, for every rule of the API, values that are just accepted and just rejected.
func TestValidation(t *testing.T) {
	t.Parallel()
	client, err := versioned.NewForConfig(testserver.Config(t))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	foos := client.FooV1alpha1().Foos(testserver.Namespace(t))

	named := func(name string) *v1alpha1.Foo {
		return &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.FooSpec{DeploymentName: "web"}}
	}
	naming := func(deploymentName string) *v1alpha1.Foo {
		f := named("foo")
		f.Spec.DeploymentName = deploymentName
		return f
	}
	replicas := func(n int32) *v1alpha1.Foo {
		f := named("foo")
		f.Spec.Replicas = &n
		return f
	}
	const noLabel = "must be a DNS label: small letters, digits and '-', with a letter or digit at both ends"
	for name, test := range map[string]struct {
		foo  *v1alpha1.Foo
		want string // part of the message; empty: accepted
	}{
		"a name of one letter":         {naming("w"), ""},
		"a name of one digit":          {naming("1"), ""},
		"a name of 63":                 {naming(strings.Repeat("n", 63)), ""},
		"a name of 64":                 {naming(strings.Repeat("n", 64)), "spec.deploymentName: Too long: may not be more than 63"},
		"no name":                      {naming(""), "spec.deploymentName in body should be at least 1 chars long"},
		"a capital letter":             {naming("Web"), noLabel},
		"a dot":                        {naming("web.example"), noLabel},
		"a dash at the beginning":      {naming("-web"), noLabel},
		"a dash at the end":            {naming("web-"), noLabel},
		"a dash in between":            {naming("w-e-b"), ""},
		"an underscore":                {naming("w_b"), noLabel},
		"a letter that is not ASCII":   {naming("w\u00e9b"), noLabel},
		"a newline":                    {naming("web\n"), noLabel},
		"0 replicas":                   {replicas(0), ""},
		"100 replicas":                 {replicas(100), ""},
		"101 replicas":                 {replicas(101), "spec.replicas in body should be less than or equal to 100"},
		"-1 replicas":                  {replicas(-1), "spec.replicas in body should be greater than or equal to 0"},
		"the Foo's own name of 63":     {named(strings.Repeat("n", 63)), ""},
		"the Foo's own name of 64":     {named(strings.Repeat("n", 64)), "metadata.name must be at most 63 characters"},
		"a dot in the Foo's own name":  {named("a.b"), ""},
		"a capital in the Foo's own":   {named("Foo"), "metadata.name"},
		"a digit begins the Foo's own": {named("1foo"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			created, err := foos.Create(t.Context(), test.foo, strictly)
			if test.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.want)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if test.foo.Spec.Replicas == nil {
				g.Expect(created.Spec.Replicas).To(HaveValue(Equal(int32(1))), "the default")
			}
		})
	}
}
