// Package cloud is the service of exercise 19a.
package cloud

import "context"

// Provider launches machines.
type Provider interface {
	// Launch launches a machine, and returns its ID. If there was a call with the same nonce in the last 24 hours, it launches
	// nothing, and returns the ID of that machine. An empty nonce is none. After an error a machine may have been launched or not.
	Launch(ctx context.Context, nonce string) (string, error)
}
