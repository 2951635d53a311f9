package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PagePort is the name of the port that v1alpha1 knows: its fields spec.port and status.port.
const PagePort = "page"

// `kubectl explain` prints the comments of fields, and keeps their line breaks. So each is one line, which the terminal wraps.

// LolcowSpec defines greetings and how they are served.
type LolcowSpec struct {
	// greetings are what the cow says, at most 8 of them, each up to 1,024 characters: each request to a pod gets its next greeting. If there is none, each pod picks a fortune of its own.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('\\\\x00')",message="must not contain a NUL character: the arguments of a program cannot contain one"
	Greetings []string `json:"greetings,omitempty"`

	// ports are the node ports at which every node serves the greetings, at most 4 of them. If there are any, one is named page: the port of v1alpha1. If there is none, the cluster allocates the port page, which status.ports reports. While another Service has one of the ports, the Lolcow keeps its old ports. To exchange the ports of two Lolcows, move one of them to a third port first.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.exists(port, port.name == 'page')",message="must contain a port named page: it is the port of v1alpha1"
	Ports []LolcowPort `json:"ports,omitempty"`

	// replicas is the number of pods that serve the greetings, 0 to 10.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Replicas *int32 `json:"replicas,omitempty"`

	// image is the container image of the server. If it is empty, the operator uses the image of its flag --lolcow-image. A node that has the image does not pull it again, whatever its tag is.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('\\\\s')",message="must not contain white space"
	Image string `json:"image,omitempty"`
}

// LolcowPort is a node port of the Lolcow's Service. All of them lead to the same pods.
type LolcowPort struct {
	// name is the name of the port, a DNS label of up to 63 characters. It is also the name of the port of the Service, except for page: the Service names that http.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'http'",message="must not be http: the Service names the port page so"
	Name string `json:"name"`

	// nodePort is the node port, 30000 to 32767: a cluster whose node ports are in another range is not supported. If it is unset, the cluster allocates one, which status.ports reports.
	// +optional
	// +kubebuilder:validation:Minimum=30000
	// +kubebuilder:validation:Maximum=32767
	NodePort *int32 `json:"nodePort,omitempty"`
}

// LolcowStatus is the most recently observed status of the Lolcow. Only the operator writes it.
type LolcowStatus struct {
	// observedGeneration is the metadata.generation that this status is based on.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// greetings are the greetings that all pods serve. They change only once every pod serves the new greetings. There is none while each pod serves a fortune of its own, and while there is no pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Greetings []string `json:"greetings,omitempty"`

	// ports are the node ports that the Service has now.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Ports []LolcowPortStatus `json:"ports,omitempty"`

	// conditions contains the condition Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LolcowPortStatus is a node port that the Service has.
type LolcowPortStatus struct {
	// name is the name of the port.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// nodePort is the node port that the Service has.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	NodePort int32 `json:"nodePort"`
}

// Lolcow serves greetings on a web page, at ports of every node.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cow,categories=all
// +kubebuilder:printcolumn:name="Greeting",type=string,JSONPath=`.status.greetings[0]`,description="The first greeting that the pods serve now"
// +kubebuilder:printcolumn:name="Port",type=integer,JSONPath=`.status.ports[?(@.name=="page")].nodePort`,description="The node port named page"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be at most 63 characters: it is the name of a Service and the value of a label"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.contains('.')",message="metadata.name must not contain a dot: it is the name of a Service"
type Lolcow struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired greetings and how they are served.
	// +optional
	Spec LolcowSpec `json:"spec,omitempty"`

	// status is the most recently observed status.
	// +optional
	Status LolcowStatus `json:"status,omitempty"`
}

// LolcowList is a list of Lolcows.
// +kubebuilder:object:root=true
type LolcowList struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Lolcow `json:"items"`
}
