package glass

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestResolveAcceptsTheNamesOfKubectl(t *testing.T) {
	t.Parallel()
	config := testserver.Config(t)
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	foos := schema.GroupVersionResource{Group: "samplecontroller.example.com", Version: "v1alpha1", Resource: "foos"}
	scalers := func(version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "autoscaling", Version: version, Resource: "horizontalpodautoscalers"}
	}
	for name, want := range map[string]schema.GroupVersionResource{
		"configmaps": configMaps, "configmap": configMaps, "cm": configMaps, "ConfigMap": configMaps,
		"deployments": deployments, "deploy": deployments, "deployment.apps": deployments, "deployments.v1.apps": deployments,
		// Other versions than the preferred one, too, but not of a short name.
		"hpa": scalers("v2"), "horizontalpodautoscalers.v1.autoscaling": scalers("v1"), "hpa.v1.autoscaling": scalers("v2"),
		"foos": foos, "foo": foos, "foos.samplecontroller.example.com": foos,
		"events.events.k8s.io": {Group: "events.k8s.io", Version: "v1", Resource: "events"},
		"events":               {Version: "v1", Resource: "events"},
		"nodes":                {Version: "v1", Resource: "nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			found, err := Resolve(t.Context(), config, name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Resource).To(Equal(want))
			g.Expect(Namespaced(found)).To(Equal(name != "nodes"))
			g.Expect(found.GroupVersionKind.Kind).NotTo(BeEmpty())
		})
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	for resource, want := range map[string]bool{"secrets": true, "sealedsecrets": true, "externalsecrets": true, "configmaps": false, "pods": false} {
		g.Expect(secret(schema.GroupVersionResource{Resource: resource})).To(Equal(want), resource)
	}
}
