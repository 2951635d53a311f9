package exercise

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	"example.com/workbook/shared/exercise/check"
)

// object names an object on a server.
type object struct {
	schema.GroupVersionResource
	namespace, name string
}

func (o object) String() string {
	return strings.TrimPrefix(fmt.Sprintf("%s %s/%s", o.GroupResource(), o.namespace, o.name), " ")
}

// ofTheServer are resources that the server itself writes at any time.
var ofTheServer = sets.New("leases", "events", "endpoints", "endpointslices", "ipaddresses", "servicecidrs", "apiservices",
	"flowschemas", "prioritylevelconfigurations")

// isOfTheServer reports whether the server itself creates the object, which may be some time after it is ready.
func (o object) isOfTheServer() bool {
	if o.GroupVersionResource == namespaces {
		return strings.HasPrefix(o.name, "kube-") || o.name == metav1.NamespaceDefault
	}
	return strings.HasPrefix(o.namespace, "kube-") ||
		o.GroupResource().String() == "services" && o.namespace == metav1.NamespaceDefault && o.name == "kubernetes"
}

// resources are those that can be listed, each in its preferred version.
func (s *server) resources() (namespaced, others []schema.GroupVersionResource, err error) {
	lists, err := s.discovery.ServerPreferredResources()
	if err != nil {
		return nil, nil, err
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range list.APIResources {
			switch {
			case ofTheServer.Has(r.Name):
			case r.Namespaced:
				namespaced = append(namespaced, gv.WithResource(r.Name))
			default:
				others = append(others, gv.WithResource(r.Name))
			}
		}
	}
	return namespaced, others, nil
}

// objects are those on the server, without those of the system's namespaces and of the server itself.
func (s *server) objects(ctx context.Context) (map[object]bool, error) {
	namespaced, others, err := s.resources()
	if err != nil {
		return nil, err
	}
	all := map[object]bool{}
	for _, resource := range append(namespaced, others...) {
		list, err := s.metadata.Resource(resource).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // its CRD has been deleted
		}
		if err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			if o := (object{resource, item.Namespace, item.Name}); !o.isOfTheServer() {
				all[o] = true
			}
		}
	}
	return all, nil
}

// added are the objects that were not there at the start.
func (s *server) added(ctx context.Context) ([]object, error) {
	now, err := s.objects(ctx)
	if err != nil {
		return nil, err
	}
	var added []object
	for o := range now {
		if !s.first[o] {
			added = append(added, o)
		}
	}
	return added, nil
}

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	jobs       = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	background = metav1.DeletePropagationBackground
	now        = metav1.DeleteOptions{GracePeriodSeconds: new(int64), PropagationPolicy: &background}
)

// deleteRuns deletes the namespaces of runs with all that is in them. No controller does that here. Each resource is listed
// once, however many namespaces there are.
func (s *server) deleteRuns(ctx context.Context, runs []string) error {
	selector := fmt.Sprintf("%s in (%s)", check.RunLabel, strings.Join(runs, ","))
	list, err := s.metadata.Resource(namespaces).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil || len(list.Items) == 0 {
		return err
	}
	ours := sets.New[string]()
	for _, namespace := range list.Items {
		ours.Insert(namespace.Name)
	}
	resources, _, err := s.resources()
	if err != nil {
		return err
	}
	for _, resource := range resources {
		items, err := s.metadata.Resource(resource).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // its CRD has been deleted
		}
		if err != nil {
			return err
		}
		for _, item := range items.Items {
			if !ours.Has(item.Namespace) {
				continue
			}
			if err := s.delete(ctx, object{resource, item.Namespace, item.Name}); err != nil {
				return err
			}
		}
	}
	for namespace := range ours {
		if err := s.delete(ctx, object{namespaces, "", namespace}); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes an object for good, whatever finalizers it has.
func (s *server) delete(ctx context.Context, o object) error {
	client := s.metadata.Resource(o.GroupVersionResource).Namespace(o.namespace)
	if err := client.Delete(ctx, o.name, now); err != nil {
		return ignoreNotFound(err)
	}
	if o.Resource == "namespaces" {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q},"spec":{"finalizers":[]}}`, o.name)
		return ignoreNotFound(s.discovery.RESTClient().Put().AbsPath("/api/v1/namespaces", o.name, "finalize").
			SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error())
	}
	rest, err := client.Get(ctx, o.name, metav1.GetOptions{})
	if err != nil || len(rest.Finalizers) == 0 || o.Resource == "customresourcedefinitions" {
		return ignoreNotFound(err)
	}
	_, err = client.Patch(ctx, o.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	return ignoreNotFound(err)
}

// reset deletes everything that was not there at the start.
func (s *server) reset(ctx context.Context) error {
	for {
		added, err := s.added(ctx)
		if err != nil || len(added) == 0 {
			return err
		}
		for _, o := range added {
			if err := s.delete(ctx, o); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), fmt.Errorf("%v cannot be deleted", added))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
