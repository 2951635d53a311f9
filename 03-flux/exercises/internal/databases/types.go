// Package databases is what the capstone Claim is given: the types of its two kinds, and the API of the cloud.
package databases

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is that of both kinds.
var SchemeGroupVersion = schema.GroupVersion{Group: "claim.example.com", Version: "v1alpha1"}

// AddToScheme makes both kinds known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &DatabaseClaim{}, &DatabaseClaimList{}, &Database{}, &DatabaseList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

// The condition of both kinds, and its reasons.
const (
	ConditionReady = "Ready"

	// ReasonAvailable is that of True.
	ReasonAvailable = "Available"
	// ReasonCreating: the cloud is not yet done.
	ReasonCreating = "Creating"
	// ReasonCloudError: a request to the cloud has failed.
	ReasonCloudError = "CloudError"
	// ReasonLost: the database was there, and is not there any more.
	ReasonLost = "Lost"
	// ReasonNotOwned, of a Database: no claim controls it.
	ReasonNotOwned = "NotOwned"
	// ReasonPending, of a claim: the Database has not yet reported about its current generation.
	ReasonPending = "Pending"
	// ReasonNameConflict, of a claim: a Database of that name is not controlled by it.
	ReasonNameConflict = "NameConflict"
)

// DeletionPolicy says what becomes of the database in the cloud.
type DeletionPolicy string

// Delete is the default in the CRD of the claim.
const (
	Delete DeletionPolicy = "Delete"
	Retain DeletionPolicy = "Retain"
)

// DatabaseClaim is written by users.
type DatabaseClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   DatabaseClaimSpec   `json:"spec"`
	Status DatabaseClaimStatus `json:"status,omitzero"`
}

// DatabaseClaimSpec is what a user wants. The API server rejects changes of an engine, a sizeGB and a class that are set. Those that
// are not set may be set later.
type DatabaseClaimSpec struct {
	Engine         string         `json:"engine"`
	SizeGB         int32          `json:"sizeGB,omitempty"`
	Class          string         `json:"class,omitempty"`
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// DatabaseClaimStatus is written by the operator.
type DatabaseClaimStatus struct {
	// Endpoint is that of the database, once there is one.
	Endpoint string `json:"endpoint,omitempty"`
	// DatabaseUID is for what the operator has to remember. It need not be used.
	DatabaseUID string             `json:"databaseUID,omitempty"`
	Conditions  []metav1.Condition `json:"conditions,omitempty"`
}

// DatabaseClaimList is a list of claims.
type DatabaseClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []DatabaseClaim `json:"items"`
}

// Database is written by the operator only.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   DatabaseSpec   `json:"spec"`
	Status DatabaseStatus `json:"status,omitzero"`
}

// DatabaseSpec has everything: nothing is left to defaults.
type DatabaseSpec struct {
	Engine         string         `json:"engine"`
	SizeGB         int32          `json:"sizeGB"`
	Class          string         `json:"class"`
	DeletionPolicy DeletionPolicy `json:"deletionPolicy"`
}

// DatabaseStatus is what is known of the database in the cloud.
type DatabaseStatus struct {
	// ID and Endpoint are the cloud's.
	ID         string             `json:"id,omitempty"`
	Endpoint   string             `json:"endpoint,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DatabaseList is a list of Databases.
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Database `json:"items"`
}

// Defaults are those of one version of the operator. The next version may have others.
type Defaults struct {
	SizeGB int32
	Class  string
}
