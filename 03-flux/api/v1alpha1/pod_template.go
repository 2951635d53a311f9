package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// PodTemplate is what users may say of the pods, beyond image and resources. Everything else of a pod is the
// operator's.
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || self.labels.all(k, !k.contains('flux-framework.org/') && !k.contains('batch.kubernetes.io/') && !(k in ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by', 'job-name', 'controller-uid']))",message="labels must not have keys of flux-framework.org or batch.kubernetes.io, nor app.kubernetes.io/name, app.kubernetes.io/instance, app.kubernetes.io/managed-by, job-name or controller-uid: the operator and the Job controller find pods by them",fieldPath=".labels"
// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || self.annotations.all(k, !k.contains('flux-framework.org/') && !k.contains('batch.kubernetes.io/'))",message="annotations must not have keys of flux-framework.org or batch.kubernetes.io: those are the operator's and the Job controller's",fieldPath=".annotations"
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || self.volumes.all(v, !v.name.startsWith('flux-'))",message="names of volumes must not begin with flux-: those are the operator's",fieldPath=".volumes"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeMounts) || self.volumeMounts.all(m, !(m.mountPath in ['/', '/flux', '/flux-config', '/flux-secret']) && !['/flux/', '/flux-config/', '/flux-secret/'].exists(p, m.mountPath.startsWith(p)))",message="volumeMounts must not be at /, nor at /flux, /flux-config, /flux-secret or below: there are the files of the broker",fieldPath=".volumeMounts"
// +kubebuilder:validation:XValidation:rule="!has(self.env) || self.env.all(e, !e.name.startsWith('FLUX_') && e.name != 'JOB_COMPLETION_INDEX')",message="env must not set FLUX_ variables, which the broker sets itself, nor JOB_COMPLETION_INDEX, which is the rank",fieldPath=".env"
type PodTemplate struct {
	// labels are added to those of the operator.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// nodeSelector is what the labels of a node must be for it to run one of the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are the taints of nodes that the pods put up with.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity says near to what, and far from what, the pods run.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// imagePullSecrets are the Secrets, of the namespace, with which the image is pulled.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// volumes of the pods, beside those of the operator, whose names begin with flux-.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Volumes []corev1.Volume `json:"volumes,omitempty"`

	// volumeMounts are where the volumes are seen by the command.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=64
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`

	// env are variables that the command sees. As all tasks see the environment of rank 0, so do valueFrom and what is expanded in a value.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Env []corev1.EnvVar `json:"env,omitempty"`

	// securityContext of the pods. If it is unset, only the seccomp profile is: RuntimeDefault. A namespace that enforces the restricted Pod Security level needs runAsNonRoot, and an image without a user of its own runAsUser.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// containerSecurityContext is that of the container. If it is unset, it forbids the gain of privileges and drops all capabilities.
	// +optional
	ContainerSecurityContext *corev1.SecurityContext `json:"containerSecurityContext,omitempty"`

	// serviceAccountName is the account of the pods. No token of it is mounted.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// priorityClassName is how important the pods are.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// schedulerName is the scheduler that places the pods; unset, the cluster's own.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`
}
