package patrols

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy returns a copy that shares nothing.
func (p *Patrol) DeepCopy() *Patrol {
	out := *p
	p.DeepCopyInto(&out.ObjectMeta)
	out.Spec.NodeSelector = maps.Clone(p.Spec.NodeSelector)
	out.Spec.Command = slices.Clone(p.Spec.Command)
	out.Status.Nodes = slices.Clone(p.Status.Nodes)
	out.Status.Conditions = slices.Clone(p.Status.Conditions)
	return &out
}

// DeepCopyObject is DeepCopy for clients and caches.
func (p *Patrol) DeepCopyObject() runtime.Object { return p.DeepCopy() }

// DeepCopyObject returns a copy that shares nothing.
func (l *PatrolList) DeepCopyObject() runtime.Object {
	out := &PatrolList{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}
