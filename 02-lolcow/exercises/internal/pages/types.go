// Package pages is what the capstone Page is given: the type of its kind, and the API of a DNS service.
package pages

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is that of the kind.
var SchemeGroupVersion = schema.GroupVersion{Group: "page.example.com", Version: "v1alpha1"}

// AddToScheme makes the kind known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &Page{}, &PageList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

// The condition, and its reasons.
const (
	ConditionReady = "Ready"

	// ReasonServing is that of True.
	ReasonServing = "Serving"
	// ReasonRollingOut: the Pods do not all serve yet what the spec asks for.
	ReasonRollingOut = "RollingOut"
	// ReasonNameConflict: an object of that name is not controlled by the Page.
	ReasonNameConflict = "NameConflict"
	// ReasonHostnameTaken: another record has the hostname.
	ReasonHostnameTaken = "HostnameTaken"
	// ReasonDNSError: a request to the DNS service has failed.
	ReasonDNSError = "DNSError"
)

// What the objects of a Page have.
const (
	// Image is a server that serves the file /page/index.md at port 8080, as a user that is not root.
	Image = "registry.example.com/page-server:1.4.2"
	// Port is where the image listens.
	Port = 8080
	// Key is that of the ConfigMap.
	Key = "index.md"
	// Annotation, of the Pods' template, is the SHA-256 of the Markdown as a hexadecimal number. A change of it rolls out.
	Annotation = "page.example.com/sha256"
	// Metric is a gauge with the labels namespace and name: 1 for a Page that is ready, else 0.
	Metric = "page_ready"
)

// Page is written by users. A name has at most 52 characters, and begins with a letter.
type Page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   PageSpec   `json:"spec"`
	Status PageStatus `json:"status,omitzero"`
}

// PageSpec is what a user wants.
type PageSpec struct {
	// Markdown has at most 262,144 bytes.
	Markdown string `json:"markdown"`
	Hostname string `json:"hostname"`
}

// PageStatus is written by the operator. Others may add conditions of their own.
type PageStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PageList is a list of Pages.
type PageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Page `json:"items"`
}
