package controller

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// maxCores is the most that a FluxSetup can give to a rank.
const maxCores = 100_000

// firstSetup is the FluxSetup that a Flux starts with: its spec, with every default filled in.
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
	follow(setup, flux)
	return setup
}

// nextSetup is the existing FluxSetup, made to follow its Flux. What was resolved when it was made stays as it is, so
// that an operator that resolves it in another way is not in conflict with a FluxSetup that an older one has made.
func nextSetup(flux *v1alpha1.Flux, live *v1alpha1.FluxSetup) *v1alpha1.FluxSetup {
	setup := &v1alpha1.FluxSetup{
		// The uid keeps what is written from falling on another object that has got the name since. The resourceVersion
		// keeps what was decided on an older state, perhaps by a replica that is not the leader any more, from undoing
		// what was written after it.
		ObjectMeta: metav1.ObjectMeta{Name: live.Name, Namespace: live.Namespace, UID: live.UID, ResourceVersion: live.ResourceVersion},
		Spec:       *live.Spec.DeepCopy(),
	}
	setup.Spec.Launch = nil
	follow(setup, flux)
	return setup
}

// follow copies the fields of a Flux that can be changed, and makes the Flux the owner: the garbage collector deletes
// the FluxSetup with it, and an event of the FluxSetup triggers a reconciliation of the Flux.
func follow(setup *v1alpha1.FluxSetup, flux *v1alpha1.Flux) {
	setup.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(flux, v1alpha1.GroupVersion.WithKind("Flux")),
	}
	setup.Spec.Suspend = flux.Spec.Suspend
	setup.Spec.StartupTimeoutSeconds = cmp.Or(flux.Spec.StartupTimeoutSeconds, defaultStartupTimeout)
	setup.Spec.ActiveDeadlineSeconds = flux.Spec.ActiveDeadlineSeconds
}

// coresPerRank is how many cores Flux gives out on each rank. They are declared, not found, so they must be
// enough for the tasks, or the job pends for ever; more do no harm.
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

// resolveTemplate fills in the security contexts.
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

// fluxSetupConfiguration is the apply configuration of all that the Flux controller owns of a FluxSetup. It is
// written by hand around the typed spec: what controller-gen makes is 3,400 lines for this one place, and would have
// to be filled field by field, where a field that is new in PodTemplate could be forgotten. An unstructured one
// would have the manager's client watch all FluxSetups a second time. The typed spec says no more than what is
// meant: each field that is encoded is owned by the Flux controller. Launch is not, and is nil.
type fluxSetupConfiguration struct {
	metav1ac.TypeMetaApplyConfiguration    `json:",inline"`
	*metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`

	Spec v1alpha1.FluxSetupSpec `json:"spec"`
	// Status is not sent: it comes with the API server's response.
	Status *v1alpha1.FluxSetupStatus `json:"status,omitempty"`
}

// IsApplyConfiguration marks it as one.
func (*fluxSetupConfiguration) IsApplyConfiguration() {}

func configurationOf(setup *v1alpha1.FluxSetup) *fluxSetupConfiguration {
	configuration := &fluxSetupConfiguration{
		TypeMetaApplyConfiguration:   *metav1ac.TypeMeta().WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind("FluxSetup"),
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

// response is the FluxSetup as it is now: Apply leaves the API server's response in the configuration.
func (c *fluxSetupConfiguration) response() *v1alpha1.FluxSetup {
	return &v1alpha1.FluxSetup{
		ObjectMeta: metav1.ObjectMeta{
			Name: ptr.Deref(c.Name, ""), Namespace: ptr.Deref(c.Namespace, ""), UID: ptr.Deref(c.UID, ""),
			Generation: ptr.Deref(c.Generation, 0),
		},
		Spec:   c.Spec,
		Status: ptr.Deref(c.Status, v1alpha1.FluxSetupStatus{}),
	}
}
