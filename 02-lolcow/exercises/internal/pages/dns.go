package pages

import (
	"context"
	"errors"
)

// What requests to the DNS service fail with, besides other errors.
var (
	// ErrNotFound: there is no record with that ID.
	ErrNotFound = errors.New("there is no such record")
	// ErrTaken: another record has the hostname.
	ErrTaken = errors.New("another record has this hostname")
)

// DNS is the API of the service. IDs are its clients' choice: at most 63 letters, digits, dots and hyphens. Unless it is ErrNotFound or
// ErrTaken, an error does not say whether the request has taken effect.
type DNS interface {
	// Get returns the record with an ID.
	Get(ctx context.Context, id string) (Record, error)
	// Put writes the record with an ID, whether there is one or not.
	Put(ctx context.Context, id string, record Record) error
	// Delete deletes the record with an ID.
	Delete(ctx context.Context, id string) error
}

// Record leads from a hostname to a Service.
type Record struct {
	Hostname string
	// Service is as in NAME.NAMESPACE.
	Service string
}
