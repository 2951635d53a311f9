// Package patrols is what the capstone Patrol is given: the type of its kind, and what the reader writes.
package patrols

import (
	"context"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Programs are what the reader writes.
type Programs struct {
	// Setup adds the controller of Patrols to a manager. Jobs are created in the namespace.
	Setup func(mgr ctrl.Manager, namespace string) error
	// Plugin is kubectl patrol NAME: it follows a Patrol until its end, writes to out, and returns an exit code.
	Plugin func(ctx context.Context, c client.WithWatch, name string, out io.Writer) int
}

// SchemeGroupVersion is that of the kind.
var SchemeGroupVersion = schema.GroupVersion{Group: "patrol.example.com", Version: "v1alpha1"}

// AddToScheme makes the kind known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &Patrol{}, &PatrolList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

const (
	// AnnotationPriority of a node is an integer. Without it, or with another text, the priority is 0.
	AnnotationPriority = "patrol.example.com/priority"
	// AnnotationCordoned of a node is the UID of the Patrol that has cordoned it.
	AnnotationCordoned = "patrol.example.com/cordoned-by"
)

// The conditions, and their reasons.
const (
	// ConditionComplete is True when all nodes are done.
	ConditionComplete = "Complete"
	// ConditionFailed is True when more nodes have failed than may.
	ConditionFailed = "Failed"

	// ReasonDone is that of Complete, True.
	ReasonDone = "Done"
	// ReasonBudgetExceeded is that of Failed, True, and of Complete, False.
	ReasonBudgetExceeded = "BudgetExceeded"
	// ReasonRunning, of Complete, False: there are nodes that are not done.
	ReasonRunning = "Running"
	// ReasonSuspended, of Complete, False: there are, and none is begun. One may be under way.
	ReasonSuspended = "Suspended"
)

// Patrol has a command run on nodes, on one after the other.
type Patrol struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   PatrolSpec   `json:"spec"`
	Status PatrolStatus `json:"status,omitzero"`
}

// PatrolSpec is what a user wants. The API server rejects changes of nodeSelector, image and command.
type PatrolSpec struct {
	// NodeSelector has the labels of the nodes. Without it, all are selected.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Image        string            `json:"image"`
	Command      []string          `json:"command"`
	// MaxFailures is on how many nodes the command may fail.
	MaxFailures int32 `json:"maxFailures,omitempty"`
	Suspend     bool  `json:"suspend,omitempty"`
}

// PatrolStatus is written by the operator.
type PatrolStatus struct {
	// Nodes are those that are done, in this order.
	Nodes      []Node             `json:"nodes,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Result is what came of the command on a node.
type Result string

// There are two.
const (
	Succeeded Result = "Succeeded"
	Failed    Result = "Failed"
)

// Node is a node that is done. Another one of the same name has another UID.
type Node struct {
	Name   string    `json:"name"`
	UID    types.UID `json:"uid"`
	Result Result    `json:"result"`
}

// PatrolList is a list of Patrols.
type PatrolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Patrol `json:"items"`
}
