// Package defaults is what exercise 18a has from its operator.
package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// Defaults are those of one version of the operator. The next version may have others.
type Defaults struct {
	Cores        int32
	TasksPerRank int32
}

// Resolve returns the spec of a Flux with all defaults resolved, for its first attempt.
func (d Defaults) Resolve(flux *v1alpha1.Flux) v1alpha1.FluxSetupSpec {
	spec := flux.DeepCopy().Spec
	return v1alpha1.FluxSetupSpec{
		Image: spec.Image, Command: spec.Command, Mode: spec.Mode, Size: spec.Size,
		MinSize: ptr.Deref(spec.MinSize, spec.Size), Tasks: ptr.Deref(spec.Tasks, spec.Size*d.TasksPerRank), Cores: d.Cores,
		Resources: ptr.Deref(spec.Resources, corev1.ResourceRequirements{}), Template: ptr.Deref(spec.Template, v1alpha1.PodTemplate{}),
		Broker: ptr.Deref(spec.Broker, v1alpha1.Broker{}), StartupTimeoutSeconds: spec.StartupTimeoutSeconds,
		ActiveDeadlineSeconds: spec.ActiveDeadlineSeconds, Attempt: 1, Suspend: spec.Suspend,
	}
}
