package pages

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy returns a copy that shares nothing.
func (p *Page) DeepCopy() *Page {
	out := *p
	p.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = slices.Clone(p.Status.Conditions)
	return &out
}

// DeepCopyObject is DeepCopy for clients and caches.
func (p *Page) DeepCopyObject() runtime.Object { return p.DeepCopy() }

// DeepCopyObject returns a copy that shares nothing.
func (l *PageList) DeepCopyObject() runtime.Object {
	out := &PageList{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}
