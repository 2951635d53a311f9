package nonce

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"example.com/workbook/shared/exercise/kube"
)

// stale is the response that a server gives which is behind.
func (s *scene) stale(r *http.Request, old map[string]corev1.ConfigMap, request kube.Request) *http.Response {
	code := http.StatusOK
	var body any
	object, found := old[request.Name]
	switch {
	case request.Verb == "list":
		body = s.staleList(old, request)
	case found:
		object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
		body = object
	default:
		code = http.StatusNotFound
		body = metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound,
			Code: http.StatusNotFound, Message: "not found",
		}
	}
	content, err := json.Marshal(body)
	s.must("encoding a ConfigMap", err)
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)),
	}
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
