package operator

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/config"
	"example.com/workbook/shared/deploy"
)

type withContainers struct {
	cluster.Cluster
	runs bool
}

func (c withContainers) RunsContainers() bool { return c.runs }

// variant is the operator of a stage from one of its overlays.
func variant(t *testing.T, stage, overlay string, containers bool) *Process {
	t.Helper()
	m, err := readManifest(stage, overlay, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Process{manifest: m, options: Options{Cluster: withContainers{runs: containers}}}
}

const testStage = "../deploy/testdata/stage"

func find(t *testing.T, objects []*unstructured.Unstructured, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == kind && u.GetNamespace() == namespace && u.GetName() == name
	})
	if i < 0 {
		t.Fatalf("there is no %s %s/%s", kind, namespace, name)
	}
	return objects[i]
}

func field(t *testing.T, object *unstructured.Unstructured, path ...string) any {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil || !found {
		t.Fatalf("%s %s has no %s: %v", object.GetKind(), object.GetName(), strings.Join(path, "."), err)
	}
	return value
}

// The API server of an embedded cluster has its objects converted by the first replica, wherever that listens.
func TestConversionsByAProcess(t *testing.T) {
	p := variant(t, testStage, "pouring", false)
	p.help = "-" + webhookFlag
	if err := p.setupConversions(t.Context()); err != nil {
		t.Fatal(err)
	}
	crd := find(t, p.manifest.rest, "CustomResourceDefinition", "", "teapots.example.com")
	if port := field(t, crd, slices.Concat(conversionService, []string{"port"})...); port != int64(p.webhookPort) || p.webhookPort == 0 {
		t.Errorf("the CRD names port %v, want %d", port, p.webhookPort)
	}
	service := find(t, p.manifest.rest, "Service", "teapot-system", "spout")
	if want := map[string]any{"type": "ExternalName", "externalName": "localhost"}; !reflect.DeepEqual(service.Object["spec"], want) {
		t.Errorf("the Service is %v, want %v", service.Object["spec"], want)
	}
	if other := find(t, p.manifest.rest, "Service", "default", "spout"); field(t, other, "spec", "selector") == nil {
		t.Errorf("another Service was changed: %v", other.Object)
	}
	args := p.arguments(&replica{number: 1, webhookPort: p.webhookPort})
	if want := fmt.Sprintf("--webhook-bind-address=127.0.0.1:%d", p.webhookPort); args[len(args)-1] != want {
		t.Errorf("the operator gets %q, want %s at the end", args, want)
	}
}

func TestOperatorThatCannotBeToldWhereToConvert(t *testing.T) {
	err := variant(t, testStage, "pouring", false).setupConversions(t.Context())
	if err == nil || !strings.Contains(err.Error(), "teapots.example.com") || !strings.Contains(err.Error(), "no flag --webhook-bind-address") {
		t.Errorf("got %v", err)
	}
}

func TestConversionsAtAServiceThatIsNotThere(t *testing.T) {
	p := variant(t, testStage, "pouring", false)
	p.help = "-" + webhookFlag
	p.manifest.rest = slices.DeleteFunc(p.manifest.rest, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == "Service" && u.GetNamespace() == "teapot-system"
	})
	if err := p.setupConversions(t.Context()); err == nil || !strings.Contains(err.Error(), "Service teapot-system/spout, which the configuration has not") {
		t.Errorf("got %v", err)
	}
}

// The port stays that of the CRD: an operator that starts again does not get another one.
func TestPortOfConversionsIsTaken(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{webhookPort: listener.Addr().(*net.TCPAddr).Port}
	if err := p.checkWebhookPort(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("at port %d, where another process listens", p.webhookPort)) {
		t.Errorf("got %v", err)
	}
	if err := errors.Join(listener.Close(), p.checkWebhookPort(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestNoConversions(t *testing.T) {
	p := variant(t, testStage, deploy.DefaultOverlay, true)
	if err := p.setupConversions(t.Context()); err != nil || p.webhookPort != 0 {
		t.Errorf("port %d, %v", p.webhookPort, err)
	}
	if args := strings.Join(p.arguments(&replica{number: 1}), " "); strings.Contains(args, "webhook") {
		t.Errorf("the operator gets %s", args)
	}
}

// The control plane of another cluster does not reach a process of this machine.
func TestConversionsByAProcessWhereNothingReachesIt(t *testing.T) {
	err := variant(t, testStage, "pouring", true).setupConversions(t.Context())
	if err == nil || !strings.Contains(err.Error(), "teapots.example.com") || !strings.Contains(err.Error(), "OVERLAY") {
		t.Errorf("got %v", err)
	}
}

// What the objects of an overlay say of each other fits: nothing else checks it before a cluster does.
func TestOverlaysWithConversions(t *testing.T) {
	stages, err := config.Stages()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, stage := range stages {
		if _, err := os.Stat(filepath.Join(stage, "config", "conversion")); err == nil {
			found++
			checkConversions(t, variant(t, stage, "conversion", true))
		}
	}
	if found == 0 {
		t.Skip("no stage has one")
	}
}

func checkConversions(t *testing.T, p *Process) {
	t.Helper()
	i := slices.IndexFunc(p.manifest.rest, converts)
	if i < 0 {
		t.Fatal("no CRD has conversions")
	}
	crd := p.manifest.rest[i]
	reference := field(t, crd, conversionService...).(map[string]any)
	service := find(t, p.manifest.rest, "Service", reference["namespace"].(string), reference["name"].(string))
	port := field(t, service, "spec", "ports").([]any)[0].(map[string]any)
	webhook := p.manifest.container.Ports[len(p.manifest.container.Ports)-1]
	for what, values := range map[string][2]any{
		"namespace of the operator":     {p.Namespace(), reference["namespace"]},
		"port of the Service":           {port["port"], reference["port"]},
		"name of the container's port":  {webhook.Name, port["targetPort"]},
		"versions of the CRD":           {len(field(t, crd, "spec", "versions").([]any)), 2},
		"pods of the Service":           {field(t, service, "spec", "selector", "control-plane"), p.manifest.deployment.Spec.Template.Labels["control-plane"]},
		"port of the operator is given": {slices.Contains(p.manifest.container.Args, fmt.Sprintf("--%s=:%d", webhookFlag, webhook.ContainerPort)), true},
	} {
		if values[0] != values[1] {
			t.Errorf("%s: got %v, want %v", what, values[0], values[1])
		}
	}
	bindings := 0
	for _, object := range p.manifest.rest {
		if !strings.HasSuffix(object.GetName(), "webhook-rolebinding") {
			continue
		}
		bindings++
		subject := field(t, object, "subjects").([]any)[0].(map[string]any)
		if subject["name"] != p.ServiceAccount() || subject["namespace"] != p.Namespace() {
			t.Errorf("%s %s: %v is not the operator", object.GetKind(), object.GetName(), subject)
		}
	}
	if bindings != 2 {
		t.Errorf("got %d bindings, want one of a Role and one of a ClusterRole", bindings)
	}
	if env, err := p.manifest.environment(1); err != nil || !slices.Contains(env, "POD_NAMESPACE="+p.Namespace()) {
		t.Errorf("the operator does not learn its namespace: %q, %v", env, err)
	}
}
