package databases

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy returns a copy that shares nothing.
func (c *DatabaseClaim) DeepCopy() *DatabaseClaim {
	out := *c
	c.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = slices.Clone(c.Status.Conditions)
	return &out
}

// DeepCopyObject is DeepCopy for clients and caches.
func (c *DatabaseClaim) DeepCopyObject() runtime.Object { return c.DeepCopy() }

// DeepCopyObject returns a copy that shares nothing.
func (l *DatabaseClaimList) DeepCopyObject() runtime.Object {
	out := &DatabaseClaimList{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}

// DeepCopy returns a copy that shares nothing.
func (d *Database) DeepCopy() *Database {
	out := *d
	d.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = slices.Clone(d.Status.Conditions)
	return &out
}

// DeepCopyObject is DeepCopy for clients and caches.
func (d *Database) DeepCopyObject() runtime.Object { return d.DeepCopy() }

// DeepCopyObject returns a copy that shares nothing.
func (l *DatabaseList) DeepCopyObject() runtime.Object {
	out := &DatabaseList{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}
