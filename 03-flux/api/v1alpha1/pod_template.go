package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// PodTemplate contains the fields of the pods that users can set, besides image and resources. The operator sets all
// other fields.
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || self.labels.all(k, !k.contains('flux-framework.org/') && !k.contains('batch.kubernetes.io/') && !(k in ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by', 'job-name', 'controller-uid']))",message="labels must not have keys of flux-framework.org or batch.kubernetes.io, nor app.kubernetes.io/name, app.kubernetes.io/instance, app.kubernetes.io/managed-by, job-name or controller-uid: the operator and the Job controller find pods by them",fieldPath=".labels"
// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || self.annotations.all(k, !k.contains('flux-framework.org/') && !k.contains('batch.kubernetes.io/'))",message="annotations must not have keys of flux-framework.org or batch.kubernetes.io: those are the operator's and the Job controller's",fieldPath=".annotations"
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || self.volumes.all(v, !v.name.startsWith('flux-'))",message="names of volumes must not begin with flux-: those are the operator's",fieldPath=".volumes"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeMounts) || self.volumeMounts.all(m, !(m.mountPath in ['/', '/flux', '/flux-config', '/flux-secret']) && !['/flux/', '/flux-config/', '/flux-secret/'].exists(p, m.mountPath.startsWith(p)))",message="volumeMounts must not be at /, nor at /flux, /flux-config, /flux-secret or below: there are the files of the broker",fieldPath=".volumeMounts"
// +kubebuilder:validation:XValidation:rule="!has(self.env) || self.env.all(e, !e.name.startsWith('FLUX_') && e.name != 'JOB_COMPLETION_INDEX')",message="env must not set FLUX_ variables, which the broker sets itself, nor JOB_COMPLETION_INDEX, which is the rank",fieldPath=".env"
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || self.labels.all(k, k.size() <= 317 && self.labels[k].size() <= 63)",message="labels must have keys of at most 317 characters, and values of at most 63",fieldPath=".labels"
// +kubebuilder:validation:XValidation:rule="!has(self.nodeSelector) || self.nodeSelector.all(k, k.size() <= 317 && self.nodeSelector[k].size() <= 63)",message="nodeSelector must have keys of at most 317 characters, and values of at most 63",fieldPath=".nodeSelector"
// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || self.annotations.map(k, k.size() + self.annotations[k].size()).sum() <= 16384",message="annotations must be at most 16384 characters in all, keys and values",fieldPath=".annotations"
// +kubebuilder:validation:XValidation:rule="!has(self.env) || self.env.map(e, e.name.size() + (has(e.value) ? e.value.size() : 0)).sum() <= 32768",message="env must be at most 32768 characters in all, names and values: a Flux must fit into etcd, and into the memory of the operator",fieldPath=".env"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeMounts) || self.volumeMounts.all(m, m.mountPath.startsWith('/') && !m.mountPath.contains('//'))",message="volumeMounts must be at absolute paths without //",fieldPath=".volumeMounts"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeMounts) || self.volumeMounts.all(m, !m.mountPath.contains('/./') && !m.mountPath.endsWith('/.'))",message="volumeMounts must be at paths without . or ..",fieldPath=".volumeMounts"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeMounts) || self.volumeMounts.all(m, !m.mountPath.contains('/../') && !m.mountPath.endsWith('/..'))",message="volumeMounts must be at paths without . or ..",fieldPath=".volumeMounts"
type PodTemplate struct {
	// labels of the pods, in addition to the labels that the operator sets.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the pods, at most 16384 characters in total.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// nodeSelector contains the labels that a node must have for the pods to be scheduled on it. The default of kubernetes.io/os is linux.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity contains the scheduling constraints of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// imagePullSecrets refer to Secrets in the same namespace that are used to pull the image.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// volumes of the pods, in addition to the operator's volumes, whose names begin with flux-.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Volumes []corev1.Volume `json:"volumes,omitempty"`

	// volumeMounts are the paths at which the volumes are mounted in the container, at most 30.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=30
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`

	// env are environment variables of the command, at most 32768 characters in total. A shell starts the broker: a shell other than bash drops variables whose names contain other characters than letters, digits and underscores. All tasks see the environment of rank 0, so valueFrom and references to other variables are resolved in the pod of rank 0.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Env []corev1.EnvVar `json:"env,omitempty"`

	// securityContext of the pods. If it is unset, the operator sets only the seccomp profile, to RuntimeDefault. A namespace that enforces the restricted Pod Security Standard requires runAsNonRoot; an image without a numeric user also requires runAsUser.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// containerSecurityContext is the securityContext of the container. If it is unset, privilege escalation is not allowed and all capabilities are dropped.
	// +optional
	ContainerSecurityContext *corev1.SecurityContext `json:"containerSecurityContext,omitempty"`

	// serviceAccountName is the name of the ServiceAccount of the pods. Its token is not mounted.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// priorityClassName is the name of the PriorityClass of the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// schedulerName is the name of the scheduler that places the pods. If unset, the default scheduler does.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`
}
