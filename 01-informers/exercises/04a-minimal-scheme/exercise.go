//go:build start

package scheme

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// NewScheme returns the smallest scheme with which ConfigMaps can be cached.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	// TODO: register what a client for ConfigMaps needs.
	return scheme, nil
}
