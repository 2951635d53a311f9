// Package operator runs a stage's operator and gives tests one handle for it, whether it runs as a
// Deployment in a cluster or as a local process. Either way it acts as its own ServiceAccount: a
// permission that its role lacks is missing in both.
package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/workbook/shared/deploy"
)

// Operator is a handle for an operator that was deployed or started: one replica, or as many as Scale
// says.
type Operator interface {
	// User is the name that the API server knows the operator by, as in the audit log.
	User() string
	// Namespace is where the operator's own objects are.
	Namespace() string
	// ServiceAccount is the name of the account it acts as.
	ServiceAccount() string
	// Logs is what the operator logged so far, one replica after the other. For earlier runs it has what
	// is still available.
	Logs(ctx context.Context) (string, error)
	// Restart ends the operator in order, starts it again and waits until it is ready.
	Restart(ctx context.Context) error
	// Kill ends the operator without warning, as a crash does, and waits until it runs again and is ready.
	Kill(ctx context.Context) error
	// KillLeader does so to the replica that holds the operator's lease, and to no other. It returns the
	// identity that the lease named. It waits for the killed replica, not for the next leader.
	KillLeader(ctx context.Context) (identity string, err error)
	// Scale has this many replicas run, one or more, and waits until each is ready. Restart, Kill, Stop
	// and Start are about all of them.
	Scale(ctx context.Context, replicas int) error
	// Stop ends the operator in order, until Start.
	Stop(ctx context.Context) error
	// Start starts the operator after Stop and waits until it is ready.
	Start(ctx context.Context) error
	// Metrics asks the first replica for /metrics with a bearer token, or with none if it is empty, and
	// returns the HTTP status and the body.
	Metrics(ctx context.Context, token string) (status int, body string, err error)
}

// manifest is what the stage's configuration says about its operator.
type manifest struct {
	deployment *appsv1.Deployment
	container  *corev1.Container
	// rest are all other objects, in the order to apply them.
	rest []*unstructured.Unstructured
}

// readManifest reads that of the stage's configuration in config/OVERLAY.
func readManifest(stageDir, overlay string, images deploy.Images) (*manifest, error) {
	objects, err := deploy.Render(stageDir, overlay, images)
	if err != nil {
		return nil, err
	}
	return findManifest(objects)
}

// findManifest takes the operator's Deployment out of a stage's objects: the one that has a
// container called manager, kubebuilder's name for it, or the only one.
func findManifest(objects []*unstructured.Unstructured) (*manifest, error) {
	m := &manifest{}
	var deployments []*appsv1.Deployment
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			m.rest = append(m.rest, object)
			continue
		}
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, d); err != nil {
			return nil, fmt.Errorf("reading Deployment %s: %w", object.GetName(), err)
		}
		deployments = append(deployments, d)
	}
	isManager := func(c corev1.Container) bool { return c.Name == "manager" }
	for _, d := range deployments {
		if i := slices.IndexFunc(d.Spec.Template.Spec.Containers, isManager); i >= 0 {
			m.deployment, m.container = d, &d.Spec.Template.Spec.Containers[i]
			return m, nil
		}
	}
	if len(deployments) != 1 || len(deployments[0].Spec.Template.Spec.Containers) == 0 {
		return nil, fmt.Errorf("finding the operator: the configuration has %d Deployments and none with a container called manager", len(deployments))
	}
	m.deployment, m.container = deployments[0], &deployments[0].Spec.Template.Spec.Containers[0]
	return m, nil
}

// AddArgs adds arguments to those of the operator in a stage's objects.
func AddArgs(objects []*unstructured.Unstructured, args ...string) error {
	m, err := findManifest(objects)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() != "Deployment" || object.GetName() != m.deployment.Name {
			continue
		}
		path := []string{"spec", "template", "spec", "containers"}
		containers, _, err := unstructured.NestedSlice(object.Object, path...)
		if err != nil {
			return fmt.Errorf("reading Deployment %s: %w", object.GetName(), err)
		}
		for _, container := range containers {
			fields, _ := container.(map[string]any)
			if fields["name"] != m.container.Name {
				continue
			}
			if err := unstructured.SetNestedStringSlice(fields, slices.Concat(m.container.Args, args), "args"); err != nil {
				return fmt.Errorf("changing Deployment %s: %w", object.GetName(), err)
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, containers, path...); err != nil {
			return fmt.Errorf("changing Deployment %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// program is that of the stage which the container runs: the one that its command names, such as /raw for cmd/raw, else
// manager, which is cmd/ itself.
func (m *manifest) program(stageDir string) string {
	if command := m.container.Command; len(command) > 0 {
		name := path.Base(command[0])
		if _, err := os.Stat(filepath.Join(stageDir, "cmd", name)); err == nil {
			return name
		}
	}
	return "manager"
}

func (m *manifest) serviceAccount() string {
	if name := m.deployment.Spec.Template.Spec.ServiceAccountName; name != "" {
		return name
	}
	return "default"
}

func (m *manifest) user() string {
	return "system:serviceaccount:" + m.deployment.Namespace + ":" + m.serviceAccount()
}

// environment returns the container's variables for a process of this machine. replica is its number:
// a pod's name is its own.
func (m *manifest) environment(replica int) ([]string, error) {
	var out []string
	for _, v := range m.container.Env {
		value := v.Value
		if v.ValueFrom != nil {
			if v.ValueFrom.FieldRef == nil {
				return nil, fmt.Errorf("running the operator as a process: its variable %s comes from an object; only fields of the pod can be given", v.Name)
			}
			switch path := v.ValueFrom.FieldRef.FieldPath; path {
			case "metadata.namespace":
				value = m.deployment.Namespace
			case "metadata.name", "spec.nodeName":
				host, err := os.Hostname()
				if err != nil {
					return nil, fmt.Errorf("reading this machine's name: %w", err)
				}
				value = host
				if path == "metadata.name" {
					value = fmt.Sprintf("%s-%d", host, replica)
				}
			case "spec.serviceAccountName":
				value = m.serviceAccount()
			default:
				return nil, fmt.Errorf("running the operator as a process: its variable %s wants the pod's %s, which a process does not have", v.Name, path)
			}
		}
		out = append(out, v.Name+"="+value)
	}
	return out, nil
}

// metricsPort is the port of --metrics-bind-address in the container's arguments.
func (m *manifest) metricsPort() (int, error) {
	const flag = "--metrics-bind-address="
	for _, arg := range m.container.Args {
		if address, found := strings.CutPrefix(arg, flag); found {
			port, err := strconv.Atoi(address[strings.LastIndex(address, ":")+1:])
			if err != nil {
				return 0, fmt.Errorf("reading %s: %w", arg, err)
			}
			return port, nil
		}
	}
	return 0, errors.New("the operator serves no metrics: its arguments have no --metrics-bind-address")
}
