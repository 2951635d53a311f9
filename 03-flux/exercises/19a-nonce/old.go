package nonce

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"example.com/workbook/shared/exercise/kube"
)

// stale is the response that a server gives which is behind.
func (s *scene) stale(r *http.Request, old map[string]corev1.ConfigMap, request kube.Request) *http.Response {
	var body any
	object, found := old[request.Name]
	switch {
	case request.Verb == "list":
		body = s.staleList(old, request)
	case found:
		object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
		body = object
	default:
		return kube.Failure(r, apierrors.NewNotFound(corev1.Resource("configmaps"), request.Name))
	}
	content, err := json.Marshal(body)
	s.must("encoding a ConfigMap", err)
	return kube.Response(r, bytes.NewReader(content))
}

func (s *scene) staleList(old map[string]corev1.ConfigMap, request kube.Request) corev1.ConfigMapList {
	byLabel, err := labels.Parse(request.Query.Get("labelSelector"))
	s.must("a label selector", err)
	byField, err := fields.ParseSelector(request.Query.Get("fieldSelector"))
	s.must("a field selector", err)
	list := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, Items: []corev1.ConfigMap{}}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		object := old[name]
		named := fields.Set{metav1.ObjectNameField: object.Name, "metadata.namespace": object.Namespace}
		if byLabel.Matches(labels.Set(object.Labels)) && byField.Matches(named) {
			list.Items = append(list.Items, object)
		}
	}
	return list
}
