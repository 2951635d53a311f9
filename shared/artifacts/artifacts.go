// Package artifacts keeps what one needs to find out why a test failed: objects, events, logs.
package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/config"
)

// Dir is REPO/_artifacts/PARTS…: git ignores it, and CI keeps it.
func Dir(parts ...string) (string, error) {
	repo, err := config.Repo()
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{repo, "_artifacts"}, parts...)...), nil
}

// skipped are resources that a dump leaves out: the content of secrets is not to be shown, endpoints are
// deprecated and in endpointslices too, and events have a file of their own.
var skipped = []schema.GroupResource{
	{Resource: "secrets"},
	{Resource: "endpoints"},
	{Resource: "events"},
	{Group: "events.k8s.io", Resource: "events"},
}

// Dump writes under dir, for each namespace, its objects, its events and the logs of its
// containers, and the audit log of the cluster. What is not available is skipped and reported in the
// error; the rest is written.
func Dump(ctx context.Context, c cluster.Cluster, dir string, namespaces ...string) error {
	cfg, err := c.RESTConfig()
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	resources, err := listable(clients.Discovery())
	errs := []error{err}
	for _, namespace := range namespaces {
		into := filepath.Join(dir, namespace)
		errs = append(errs,
			dumpObjects(ctx, objects, resources, namespace, into),
			dumpEvents(ctx, clients, namespace, into))
		if c.RunsContainers() {
			errs = append(errs, dumpLogs(ctx, clients, namespace, into))
		}
	}
	return errors.Join(append(errs, dumpAudit(ctx, c, dir))...)
}

// listable returns the resources that can be listed in a namespace. Discovery reports groups that
// do not answer and returns the others all the same.
func listable(d discovery.DiscoveryInterface) ([]schema.GroupVersionResource, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(d)
	var out []schema.GroupVersionResource
	for _, list := range lists {
		version, parseErr := schema.ParseGroupVersion(list.GroupVersion)
		if parseErr != nil {
			continue
		}
		for _, resource := range list.APIResources {
			gr := schema.GroupResource{Group: version.Group, Resource: resource.Name}
			if slices.Contains(resource.Verbs, "list") && !slices.Contains(skipped, gr) {
				out = append(out, version.WithResource(resource.Name))
			}
		}
	}
	if err != nil {
		return out, fmt.Errorf("finding out what can be listed: %w", err)
	}
	return out, nil
}

// dumpObjects writes one file for each resource that has objects.
func dumpObjects(ctx context.Context, c dynamic.Interface, resources []schema.GroupVersionResource, namespace, dir string) error {
	var errs []error
	for _, resource := range resources {
		list, err := c.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			errs = append(errs, fmt.Errorf("listing %s: %w", resource.Resource, err))
			continue
		}
		if len(list.Items) == 0 {
			continue
		}
		text, err := yaml.Marshal(&unstructured.UnstructuredList{Object: list.Object, Items: list.Items})
		if err != nil {
			errs = append(errs, fmt.Errorf("writing %s: %w", resource.Resource, err))
			continue
		}
		errs = append(errs, write(filepath.Join(dir, resource.Resource+".yaml"), text))
	}
	return errors.Join(errs...)
}

// dumpEvents writes events as lines, oldest first.
func dumpEvents(ctx context.Context, c kubernetes.Interface, namespace, dir string) error {
	list, err := c.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing events: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	var text strings.Builder
	for _, e := range list.Items {
		fmt.Fprintf(&text, "%s %s %s %s/%s (%d times) %s\n", e.CreationTimestamp.Format("15:04:05"), e.Type, e.Reason,
			e.InvolvedObject.Kind, e.InvolvedObject.Name, max(1, e.Count), e.Message)
	}
	return write(filepath.Join(dir, "events.txt"), []byte(text.String()))
}

// dumpLogs writes the log of every container, and of its run before a restart.
func dumpLogs(ctx context.Context, c kubernetes.Interface, namespace, dir string) error {
	pods, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	var errs []error
	for _, pod := range pods.Items {
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			for suffix, previous := range map[string]bool{"": false, ".previous": true} {
				log, err := c.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name, Previous: previous}).DoRaw(ctx)
				if err != nil {
					continue // not started yet, or never restarted: pods.yaml tells
				}
				errs = append(errs, write(filepath.Join(dir, "logs", pod.Name+"."+container.Name+suffix+".log"), log))
			}
		}
	}
	return errors.Join(errs...)
}

func dumpAudit(ctx context.Context, c cluster.Cluster, dir string) error {
	log, err := c.AuditLog(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the audit log: %w", err)
	}
	f, err := os.Create(filepath.Join(dir, "audit.log"))
	if err != nil {
		return fmt.Errorf("writing the audit log: %w", err)
	}
	_, err = io.Copy(f, log)
	return errors.Join(err, f.Close())
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
