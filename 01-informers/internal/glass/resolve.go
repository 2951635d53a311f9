package glass

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// ServedResource is a resource that the cluster serves.
type ServedResource struct {
	GVR        schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// Resolve finds a resource by any name that kubectl accepts: plural, singular, kind or short name, alone or followed by
// .GROUP or .VERSION.GROUP. If several have the name, it returns the first in the API server's order. The error for an
// unknown name suggests similar names.
func Resolve(config *rest.Config, name string) (ServedResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return ServedResource{}, fmt.Errorf("creating a discovery client: %w", err)
	}
	// The preferred versions come first: a name without a version means one of them.
	preferred, err := client.ServerPreferredResources()
	var partly *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partly) {
		return ServedResource{}, fmt.Errorf("discovering the resources of the cluster: %w", err)
	}
	_, all, err := client.ServerGroupsAndResources()
	if err != nil && !errors.As(err, &partly) {
		return ServedResource{}, fmt.Errorf("discovering the resources of the cluster: %w", err)
	}
	// If the API server of an aggregated group is down, only its resources are missing.
	found, findErr := findResource(slices.Concat(preferred, all), strings.ToLower(name))
	if findErr != nil && partly != nil {
		return ServedResource{}, fmt.Errorf("%w (and not all resources could be discovered: %w)", findErr, partly)
	}
	return found, findErr
}

func findResource(lists []*metav1.APIResourceList, name string) (ServedResource, error) {
	var similar []string
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return ServedResource{}, fmt.Errorf("reading the resources of the cluster: %w", err)
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				continue // a subresource
			}
			if !named(resource, version, name) {
				if isSimilar(resource, name) {
					similar = append(similar, version.WithResource(resource.Name).GroupResource().String())
				}
				continue
			}
			if !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "watch") {
				return ServedResource{}, fmt.Errorf("%s cannot be listed and watched: the cluster serves only %s for it",
					resource.Name, strings.Join(resource.Verbs, ", "))
			}
			return ServedResource{GVR: version.WithResource(resource.Name), Kind: resource.Kind, Namespaced: resource.Namespaced}, nil
		}
	}
	return ServedResource{}, unknown(name, similar)
}

func unknown(name string, similar []string) error {
	slices.Sort(similar)
	similar = slices.Compact(similar)
	if len(similar) == 0 {
		return fmt.Errorf("the cluster has no resource %q; `kubectl api-resources` lists those it has", name)
	}
	return fmt.Errorf("the cluster has no resource %q; did you mean %s?", name, strings.Join(similar[:min(len(similar), 5)], ", "))
}

// names are the names of a resource.
func names(resource metav1.APIResource) []string {
	return append([]string{resource.Name, resource.SingularName, strings.ToLower(resource.Kind)}, resource.ShortNames...)
}

func named(resource metav1.APIResource, version schema.GroupVersion, want string) bool {
	for _, name := range names(resource) {
		if name != "" && (want == name || want == name+"."+version.Group || want == name+"."+version.Version+"."+version.Group) {
			return true
		}
	}
	return false
}

// isSimilar reports whether want may be a mistyped name of a resource: one is a prefix of the other, or they differ by two
// letters at most.
func isSimilar(resource metav1.APIResource, want string) bool {
	want, _, _ = strings.Cut(want, ".")
	for _, name := range names(resource)[:3] {
		switch {
		case len(name) < 3 || len(want) < 3:
		case strings.HasPrefix(name, want), strings.HasPrefix(want, name), distance(name, want) <= 2:
			return true
		}
	}
	return false
}

// distance is how many letters have to be added, removed or changed to get b from a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// CheckAccess lists and watches once, as the informer does, so that a missing permission or a cluster that is down is an
// error at the start, and not only a line in the log every half minute. It requests metadata only.
func CheckAccess(ctx context.Context, config *rest.Config, found ServedResource, namespace string) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a metadata client: %w", err)
	}
	resource := client.Resource(found.GVR).Namespace(namespace)
	list, err := resource.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("listing %s: %w", found.GVR.GroupResource(), err)
	}
	watch, err := resource.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, TimeoutSeconds: new(int64(1))})
	if err != nil {
		return fmt.Errorf("watching %s: %w", found.GVR.GroupResource(), err)
	}
	watch.Stop()
	return nil
}
