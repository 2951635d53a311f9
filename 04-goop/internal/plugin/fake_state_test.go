package plugin

import (
	"maps"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// The state of the fake that tests read and set.

func (f *fake) all() map[string]*v1alpha1.Goop {
	f.lock.Lock()
	defer f.lock.Unlock()
	return maps.Clone(f.goops)
}

// name returns the name of the Goop that was created last.
func (f *fake) name() string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.created
}

func (f *fake) count(request string) int {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.requests[request]
}

func (f *fake) most() int {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.mostOpen
}

func (f *fake) changes() int {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.version
}

func (f *fake) creates(work func(*v1alpha1.Goop)) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.onCreate = work
}
