package databases

import (
	"context"
	"errors"
)

// What requests to the cloud fail with, besides other errors.
var (
	// ErrNotFound: there is no database with that ID.
	ErrNotFound = errors.New("the cloud has no such database")
	// ErrMismatch: the token was used for a database with another spec.
	ErrMismatch = errors.New("the token was used with another spec")
)

// Cloud is the API of the cloud. Unless it is ErrNotFound or ErrMismatch, an error does not say whether the request has taken effect.
type Cloud interface {
	// Create creates a database. A request whose token was used in the last 24 hours creates nothing, and returns the database of that
	// time, also if it has been deleted since. An empty token is none.
	Create(ctx context.Context, token string, spec CloudSpec) (CloudDatabase, error)
	// Get returns the database with an ID.
	Get(ctx context.Context, id string) (CloudDatabase, error)
	// Delete deletes the database with an ID, and all that is in it.
	Delete(ctx context.Context, id string) error
	// List returns all databases of the account, also those of others.
	List(ctx context.Context) ([]CloudDatabase, error)
}

// CloudSpec is what a database is created with.
type CloudSpec struct {
	Engine string
	SizeGB int32
	Class  string
}

// CloudDatabase is a database.
type CloudDatabase struct {
	ID string
	// Token is that of its creation.
	Token    string
	Spec     CloudSpec
	Endpoint string
	// Available is false while it is being created.
	Available bool
}
