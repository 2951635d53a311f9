package controller

import (
	"maps"
	"math"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/internal/broker"
)

const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "flux-operator"

	// labelAttempt is the attempt that a Job or a pod is for.
	labelAttempt = "flux-framework.org/attempt"
	// annotationStarted is "false" on a new Job, and "true" from the moment at which it may run.
	annotationStarted = "flux-framework.org/started"
	// annotationStartTime is when a Job was started. A Job that was not started does not have it.
	annotationStartTime = "flux-framework.org/start-time"
	// annotationConfigHash on a Job is the SHA-256 of the files in its ConfigMap.
	annotationConfigHash = "flux-framework.org/config-hash"
	// annotationCertificates on a Job is the SHA-256 of each certificate that was created for it. One of them is in its
	// Secret.
	annotationCertificates = "flux-framework.org/certificates"

	containerName = "flux"
	portName      = "broker"

	// Volume names with these prefixes are reserved: the API rejects them in a Flux.
	volumeDir    = "flux-dir"
	volumeConfig = "flux-config"
	volumeSecret = "flux-secret"

	// gracePeriodSeconds is how long a broker may take to terminate.
	gracePeriodSeconds = 10
)

// dependentLabels are the labels of all dependents of a FluxSetup.
func dependentLabels(setup *v1alpha1.FluxSetup) map[string]string {
	return map[string]string{labelName: "flux", labelInstance: setup.Name, labelManagedBy: managedBy}
}

// attemptLabels are the labels of the dependents of one attempt.
func attemptLabels(setup *v1alpha1.FluxSetup) map[string]string {
	labels := dependentLabels(setup)
	labels[labelAttempt] = strconv.Itoa(int(setup.Spec.Attempt))
	return labels
}

// podSelector selects the Jobs and pods of a FluxSetup, of all attempts.
func podSelector(setup *v1alpha1.FluxSetup) map[string]string {
	return map[string]string{labelInstance: setup.Name, labelManagedBy: managedBy}
}

// attemptMeta is the metadata of a dependent of one attempt: the garbage collector deletes it with its owner.
func attemptMeta(setup *v1alpha1.FluxSetup, owner client.Object, kind schema.GroupVersionKind) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: jobName(setup), Namespace: setup.Namespace, Labels: attemptLabels(setup),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
	}
}

// clusterOf is the input for the files of the brokers.
func clusterOf(setup *v1alpha1.FluxSetup) broker.Cluster {
	spec := setup.Spec
	return broker.Cluster{
		Name: jobName(setup), Service: setup.Name, Namespace: setup.Namespace,
		Size: spec.Size, MinSize: spec.MinSize, Tasks: spec.Tasks, Cores: spec.Cores,
		Port: spec.Broker.Port, LogLevel: ptr.Deref(spec.Broker.LogLevel, 0), ConnectTimeout: spec.Broker.ConnectTimeout,
		Launcher: spec.Mode == v1alpha1.ModeLauncher, Argv: spec.Command,
	}
}

// desiredSecret is owned by the Job of an attempt, and deleted with it.
func desiredSecret(setup *v1alpha1.FluxSetup, job *batchv1.Job, certificate []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: attemptMeta(setup, job, jobKind),
		Immutable:  new(true),
		Data:       map[string][]byte{broker.CertificateFile: certificate},
	}
}

// desiredConfigMap is owned by the Job of an attempt, and deleted with it.
func desiredConfigMap(setup *v1alpha1.FluxSetup, job *batchv1.Job) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: attemptMeta(setup, job, jobKind),
		Immutable:  new(true),
		Data:       clusterOf(setup).Files(),
	}
}

var jobKind = batchv1.SchemeGroupVersion.WithKind("Job")

// launchApplyConfiguration is the apply configuration of spec.launch alone.
type launchApplyConfiguration struct {
	metav1ac.TypeMetaApplyConfiguration    `json:",inline"`
	*metav1ac.ObjectMetaApplyConfiguration `json:"metadata"`

	Spec struct {
		Launch v1alpha1.Launch `json:"launch"`
	} `json:"spec"`
}

// IsApplyConfiguration implements runtime.ApplyConfiguration.
func (*launchApplyConfiguration) IsApplyConfiguration() {}

// desiredLaunch is accepted only if the FluxSetup has not changed since it was read.
func desiredLaunch(setup *v1alpha1.FluxSetup, launch v1alpha1.Launch) *launchApplyConfiguration {
	configuration := &launchApplyConfiguration{
		TypeMetaApplyConfiguration: *metav1ac.TypeMeta().WithAPIVersion(v1alpha1.SchemeGroupVersion.String()).WithKind("FluxSetup"),
		ObjectMetaApplyConfiguration: metav1ac.ObjectMeta().WithName(setup.Name).WithNamespace(setup.Namespace).
			WithUID(setup.UID).WithResourceVersion(setup.ResourceVersion),
	}
	configuration.Spec.Launch = launch
	return configuration
}

// desiredService gives each rank its DNS name before it is ready, because a broker becomes ready only after the others
// have found it. The name of the Service is that of the FluxSetup, for all attempts: hosts are
// NAME-ATTEMPT-RANK.NAME.NAMESPACE.svc. The selector selects the current attempt only, so that no other pod is in its
// endpoints.
func desiredService(setup *v1alpha1.FluxSetup) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(setup.Name, setup.Namespace).
		WithLabels(dependentLabels(setup)).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(v1alpha1.SchemeGroupVersion.String()).
			WithKind("FluxSetup").
			WithName(setup.Name).
			WithUID(setup.UID).
			WithController(true).
			WithBlockOwnerDeletion(true)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithClusterIP(corev1.ClusterIPNone).
			WithPublishNotReadyAddresses(true).
			WithSelector(attemptLabels(setup)).
			WithPorts(corev1ac.ServicePort().
				WithName(portName).
				WithProtocol(corev1.ProtocolTCP).
				WithPort(setup.Spec.Broker.Port).
				WithTargetPort(intstr.FromString(portName))))
}

// desiredJob is the Job of the current attempt. It is suspended until it is recorded.
func desiredJob(setup *v1alpha1.FluxSetup) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: attemptMeta(setup, setup, v1alpha1.SchemeGroupVersion.WithKind("FluxSetup")),
		Spec:       runsOnce(setup.Spec.Size),
	}
	job.Spec.ActiveDeadlineSeconds, job.Spec.Template = setup.Spec.ActiveDeadlineSeconds, desiredPod(setup)
	job.Annotations = map[string]string{annotationStarted: "false", annotationConfigHash: clusterOf(setup).Hash()}
	return job
}

// desiredPod is the pod template. It is the same for all ranks: the Job controller sets the index of each pod.
func desiredPod(setup *v1alpha1.FluxSetup) corev1.PodTemplateSpec {
	given := setup.Spec.Template.DeepCopy()
	labels := map[string]string{}
	maps.Copy(labels, given.Labels)
	maps.Copy(labels, attemptLabels(setup))
	// Flux is for Linux. If a user names another system, the job waits for such a node.
	nodeSelector := map[string]string{corev1.LabelOSStable: string(corev1.Linux)}
	maps.Copy(nodeSelector, given.NodeSelector)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: given.Annotations},
		Spec: corev1.PodSpec{
			Subdomain:     setup.Name,
			RestartPolicy: corev1.RestartPolicyNever,
			// Followers ignore TERM when their leader no longer exists, so this is how long they delay the deletion.
			TerminationGracePeriodSeconds: new(int64(gracePeriodSeconds)),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			Containers:                    []corev1.Container{desiredContainer(setup, given)},
			Volumes: append([]corev1.Volume{
				{Name: volumeDir, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: volumeConfig, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: jobName(setup)},
				}}},
				{Name: volumeSecret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: jobName(setup)}}},
			}, given.Volumes...),
			NodeSelector:       nodeSelector,
			Tolerations:        given.Tolerations,
			Affinity:           given.Affinity,
			ImagePullSecrets:   given.ImagePullSecrets,
			SecurityContext:    given.SecurityContext,
			ServiceAccountName: given.ServiceAccountName,
			PriorityClassName:  given.PriorityClassName,
			SchedulerName:      given.SchedulerName,
		},
	}
}

func desiredContainer(setup *v1alpha1.FluxSetup, given *v1alpha1.PodTemplate) corev1.Container {
	return corev1.Container{
		Name:      containerName,
		Image:     setup.Spec.Image,
		Command:   []string{"/bin/sh", broker.ConfigDir + "/" + broker.EntrypointFile},
		Env:       given.Env,
		Ports:     []corev1.ContainerPort{{Name: portName, ContainerPort: setup.Spec.Broker.Port, Protocol: corev1.ProtocolTCP}},
		Resources: setup.Spec.Resources,
		VolumeMounts: append([]corev1.VolumeMount{
			{Name: volumeDir, MountPath: broker.Dir},
			{Name: volumeConfig, MountPath: broker.ConfigDir, ReadOnly: true},
			{Name: volumeSecret, MountPath: broker.SecretDir, ReadOnly: true},
		}, given.VolumeMounts...),
		SecurityContext: given.ContainerSecurityContext,
		// The operator, not the kubelet, decides how long a start may take.
		StartupProbe: &corev1.Probe{
			ProbeHandler:     corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "test -e " + broker.ReadyFile}}},
			PeriodSeconds:    1,
			TimeoutSeconds:   10,
			FailureThreshold: math.MaxInt32,
		},
		// The kubelet keeps the end of the output in the pod's status, where it outlives the container.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// isOurs reports whether any FluxSetup is the controller of the object.
func isOurs(object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == "FluxSetup" && owner.APIVersion == v1alpha1.SchemeGroupVersion.String()
}
