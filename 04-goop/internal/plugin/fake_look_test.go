package plugin

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// What a test sees of the fake, and tells it beforehand.

func (f *fake) all() map[string]*v1alpha1.Goop {
	f.lock.Lock()
	defer f.lock.Unlock()
	return maps.Clone(f.goops)
}

// name is that of the Goop that was created last.
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

func (f *fake) refuses(request string, with metav1.Status) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.refuse[request] = with
}

func (f *fake) permits(request string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.refuse, request)
}
