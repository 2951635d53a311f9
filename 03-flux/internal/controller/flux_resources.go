package controller

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// The defaults of the CRD. They are repeated here so that a FluxSetup has every field, even if its Flux was stored
// before a default was added to the CRD.
const (
	defaultPort           = 8050
	defaultConnectTimeout = "5s"
	defaultLogLevel       = 3
	defaultStartupTimeout = 300
)

// maxCores is the maximum that the API accepts in a FluxSetup.
const maxCores = 100_000

// firstSetup is the FluxSetup of the first attempt: the spec of the Flux, with every default filled in.
func firstSetup(flux *v1alpha1.Flux) *v1alpha1.FluxSetup {
	spec := flux.Spec.DeepCopy()
	size := cmp.Or(spec.Size, 1)
	minSize := ptr.Deref(spec.MinSize, size)
	tasks := ptr.Deref(spec.Tasks, size)
	mode := cmp.Or(spec.Mode, v1alpha1.ModeSubmit)
	resources := ptr.Deref(spec.Resources, corev1.ResourceRequirements{})
	setup := &v1alpha1.FluxSetup{
		ObjectMeta: metav1.ObjectMeta{Name: flux.Name, Namespace: flux.Namespace},
		Spec: v1alpha1.FluxSetupSpec{
			Image:     spec.Image,
			Command:   spec.Command,
			Mode:      mode,
			Size:      size,
			MinSize:   minSize,
			Tasks:     tasks,
			Cores:     coresPerRank(mode, tasks, minSize, resources),
			Resources: resources,
			Template:  resolveTemplate(spec.Template),
			Broker:    resolveBroker(spec.Broker),
			Attempt:   1,
		},
	}
	copyMutableFields(setup, flux)
	return setup
}

// nextSetup is the existing FluxSetup, updated from its Flux. Values that were resolved when it was created stay as
// they are. So a new version of the operator, which may resolve them differently, does not conflict with an existing
// FluxSetup.
func nextSetup(flux *v1alpha1.Flux, live *v1alpha1.FluxSetup) *v1alpha1.FluxSetup {
	setup := &v1alpha1.FluxSetup{
		// The uid prevents a write to another object that has the same name. The resourceVersion prevents a decision on
		// an older state, perhaps by a replica that is no longer the leader, from undoing a later write.
		ObjectMeta: metav1.ObjectMeta{Name: live.Name, Namespace: live.Namespace, UID: live.UID, ResourceVersion: live.ResourceVersion},
		Spec:       *live.Spec.DeepCopy(),
	}
	setup.Spec.Launch = nil
	copyMutableFields(setup, flux)
	return setup
}

// copyMutableFields copies the mutable fields of a Flux, and makes the Flux the owner: the garbage collector deletes the
// FluxSetup with it, and an event of the FluxSetup triggers a reconciliation of the Flux.
func copyMutableFields(setup *v1alpha1.FluxSetup, flux *v1alpha1.Flux) {
	setup.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(flux, v1alpha1.SchemeGroupVersion.WithKind("Flux")),
	}
	setup.Spec.Suspend = flux.Spec.Suspend
	setup.Spec.StartupTimeoutSeconds = cmp.Or(flux.Spec.StartupTimeoutSeconds, defaultStartupTimeout)
	setup.Spec.ActiveDeadlineSeconds = flux.Spec.ActiveDeadlineSeconds
}

// coresPerRank is how many cores Flux gives out on each rank. They are declared, not discovered. So they must be enough
// for the tasks: otherwise the job stays pending forever. A higher number has no effect.
func coresPerRank(mode v1alpha1.Mode, tasks, minSize int32, resources corev1.ResourceRequirements) int32 {
	cores := int32(1)
	if mode == v1alpha1.ModeSubmit {
		cores = max(cores, (tasks+minSize-1)/minSize)
	}
	cpu, limited := resources.Limits[corev1.ResourceCPU]
	if !limited {
		cpu = resources.Requests[corev1.ResourceCPU]
	}
	// Value rounds up.
	return max(cores, int32(min(cpu.Value(), maxCores)))
}

// resolveTemplate sets the default security contexts.
func resolveTemplate(given *v1alpha1.PodTemplate) v1alpha1.PodTemplate {
	template := ptr.Deref(given, v1alpha1.PodTemplate{})
	if template.SecurityContext == nil {
		template.SecurityContext = &corev1.PodSecurityContext{}
	}
	if template.SecurityContext.SeccompProfile == nil {
		template.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	if template.ContainerSecurityContext == nil {
		template.ContainerSecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
	return template
}

func resolveBroker(given *v1alpha1.Broker) v1alpha1.Broker {
	broker := ptr.Deref(given, v1alpha1.Broker{})
	broker.Port = cmp.Or(broker.Port, defaultPort)
	broker.ConnectTimeout = cmp.Or(broker.ConnectTimeout, defaultConnectTimeout)
	if broker.LogLevel == nil {
		broker.LogLevel = new(int32(defaultLogLevel))
	}
	return broker
}

// fluxSetupApplyConfiguration is the apply configuration of all fields of a FluxSetup that the Flux controller owns. It is
// written by hand around the typed spec, for three reasons. controller-gen would generate 3,400 lines for this one
// place. A generated configuration is filled field by field, so a new field of PodTemplate could be forgotten. With an
// unstructured object, the manager's client would watch all FluxSetups a second time. The typed spec encodes only the
// fields that the Flux controller owns: Launch is not one of them, and is nil.
type fluxSetupApplyConfiguration struct {
	metav1ac.TypeMetaApplyConfiguration    `json:",inline"`
	*metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`

	Spec v1alpha1.FluxSetupSpec `json:"spec"`
}

// IsApplyConfiguration implements runtime.ApplyConfiguration.
func (*fluxSetupApplyConfiguration) IsApplyConfiguration() {}

// WithUID implements typedApplyConfiguration, with WithResourceVersion, as generated ones do.
func (c *fluxSetupApplyConfiguration) WithUID(uid types.UID) *fluxSetupApplyConfiguration {
	c.ObjectMetaApplyConfiguration.WithUID(uid)
	return c
}

// WithResourceVersion implements typedApplyConfiguration.
func (c *fluxSetupApplyConfiguration) WithResourceVersion(version string) *fluxSetupApplyConfiguration {
	c.ObjectMetaApplyConfiguration.WithResourceVersion(version)
	return c
}

func applyConfigurationOf(setup *v1alpha1.FluxSetup) *fluxSetupApplyConfiguration {
	configuration := &fluxSetupApplyConfiguration{
		TypeMetaApplyConfiguration:   *metav1ac.TypeMeta().WithAPIVersion(v1alpha1.SchemeGroupVersion.String()).WithKind("FluxSetup"),
		ObjectMetaApplyConfiguration: metav1ac.ObjectMeta().WithName(setup.Name).WithNamespace(setup.Namespace),
		Spec:                         *setup.Spec.DeepCopy(),
	}
	if setup.UID != "" {
		configuration.WithUID(setup.UID)
	}
	if setup.ResourceVersion != "" {
		configuration.WithResourceVersion(setup.ResourceVersion)
	}
	for _, owner := range setup.OwnerReferences {
		configuration.WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).WithName(owner.Name).WithUID(owner.UID).
			WithController(ptr.Deref(owner.Controller, false)).WithBlockOwnerDeletion(ptr.Deref(owner.BlockOwnerDeletion, false)))
	}
	return configuration
}
