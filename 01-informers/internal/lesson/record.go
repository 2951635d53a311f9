package lesson

import (
	"slices"
	"sync"
)

// Record is what happened, in order. The zero value is ready to use. It is safe for concurrent use.
type Record[T any] struct {
	mu  sync.Mutex
	all []T
}

// Add records one thing.
func (r *Record[T]) Add(one T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

// All returns what was recorded since the last Take.
func (r *Record[T]) All() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// Take is All, and removes what it returns.
func (r *Record[T]) Take() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.all
	r.all = nil
	return taken
}
