package controller

import (
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "goop-operator"

	// labelNone is a label that no node has: a DaemonSet whose pods ask for it has none.
	labelNone = "goop.example.com/none"

	installContainer = "install"
	pauseContainer   = "pause"

	// workerDir is the folder that a worker's containers share: it holds the program and the record.
	workerDir    = "/goop"
	workerImage  = "/goop-worker"
	workerFile   = workerDir + "/worker"
	hostDir      = "/host"
	volumeWorker = "goop"
	volumeHost   = "host"

	// nonRoot is the user of all that need not be root.
	nonRoot = 65532

	// gracePeriodSeconds is how long a worker that is ended may take.
	gracePeriodSeconds = 10
)

// Images are those that the pods of workers are made of.
type Images struct {
	// Operator is the operator's own: it holds the program that runs the work.
	Operator string
	// Worker is that of Goops whose spec names none.
	Worker string
}

// roundName is the name of the DaemonSet of a round.
func roundName(goop string, round int) string { return goop + "-" + strconv.Itoa(round) }

// cleanupName is the name of the DaemonSet of the cleanup.
func cleanupName(goop string) string { return goop + "-cleanup" }

// dependentLabels are those of all that is made for a Goop.
func dependentLabels(goop *v1alpha1.Goop) map[string]string {
	return map[string]string{
		labelName: "goop", labelInstance: goop.Name, labelManagedBy: managedBy,
		v1alpha1.LabelGoop: goop.Name,
	}
}

// dependentMeta makes the Goop the controller of a dependent: the garbage collector deletes the dependent with it, and the
// dependent's events trigger a reconciliation of the Goop.
func dependentMeta(goop *v1alpha1.Goop, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: goop.Namespace, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(goop, v1alpha1.GroupVersion.WithKind("Goop"))},
	}
}

// withoutBlocking does not block the deletion of the Goop: where the Goop is deleted in the foreground, the garbage
// collector first deletes what blocks, and these are needed until the cleanup is done.
func withoutBlocking(meta metav1.ObjectMeta) metav1.ObjectMeta {
	meta.OwnerReferences[0].BlockOwnerDeletion = nil
	return meta
}

// desiredRound is the DaemonSet of a round.
func desiredRound(goop *v1alpha1.Goop, round plan.Round, images Images) *appsv1.DaemonSet {
	number := strconv.Itoa(round.Number)
	labels := dependentLabels(goop)
	labels[v1alpha1.LabelRound], labels[v1alpha1.LabelRole] = number, v1alpha1.RoleWork
	labels[v1alpha1.LabelGoopUID] = string(goop.UID)
	pod := desiredPod(goop, goop.Spec.Cmd, number, images)
	pod.NodeSelector = goop.Spec.NodeSelector
	pod.Tolerations = goop.Spec.Tolerations
	if selector := nodeSelectorOf(round); selector != nil {
		pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
	}
	meta := dependentMeta(goop, roundName(goop.Name, round.Number), labels)
	if len(goop.Spec.CleanupCmd) > 0 {
		meta = withoutBlocking(meta)
	}
	return &appsv1.DaemonSet{
		ObjectMeta: meta,
		Spec: daemonSetSpec(labels, pod, map[string]string{
			v1alpha1.LabelGoop: goop.Name, v1alpha1.LabelRole: v1alpha1.RoleWork, v1alpha1.LabelRound: number,
		}),
	}
}

// desiredCleanup is the DaemonSet that runs the cleanup on the nodes of that name. It goes where work was, whatever
// has become of the node's labels and taints since.
func desiredCleanup(goop *v1alpha1.Goop, nodes []string, images Images) *appsv1.DaemonSet {
	labels := dependentLabels(goop)
	labels[v1alpha1.LabelRole] = v1alpha1.RoleCleanup
	pod := desiredPod(goop, goop.Spec.CleanupCmd, "", images)
	pod.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: nodeSelectorOf(plan.Round{Nodes: nodes}),
	}}
	return &appsv1.DaemonSet{
		ObjectMeta: withoutBlocking(dependentMeta(goop, cleanupName(goop.Name), labels)),
		Spec: daemonSetSpec(labels, pod, map[string]string{
			v1alpha1.LabelGoop: goop.Name, v1alpha1.LabelRole: v1alpha1.RoleCleanup,
		}),
	}
}

// daemonSetSpec leaves pods that are there as they are, whatever is changed in the template: with a rolling update,
// finished work on nodes that stay would run again. It keeps no history: that would hold lists of all nodes.
func daemonSetSpec(labels map[string]string, pod corev1.PodSpec, selector map[string]string) appsv1.DaemonSetSpec {
	return appsv1.DaemonSetSpec{
		Selector:             &metav1.LabelSelector{MatchLabels: selector},
		UpdateStrategy:       appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
		RevisionHistoryLimit: new(int32(0)),
		Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)}, Spec: pod},
	}
}

// desiredPod is a worker. Its work is an init container, as the containers of a DaemonSet's pod are started anew
// when they end: the only one that is not an init container does nothing.
func desiredPod(goop *v1alpha1.Goop, argv []string, round string, images Images) corev1.PodSpec {
	host := ptr.Deref(goop.Spec.Host, v1alpha1.HostAccess{})
	folder := corev1.VolumeMount{Name: volumeWorker, MountPath: workerDir}
	pod := corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(gracePeriodSeconds)),
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		SecurityContext: &corev1.PodSecurityContext{
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		InitContainers: []corev1.Container{
			ownContainer(installContainer, images.Operator, []string{workerImage, "install", workerFile}, folder),
			workContainer(goop, argv, round, images, folder),
		},
		Containers: []corev1.Container{ownContainer(pauseContainer, images.Operator, []string{workerImage, "pause"})},
		Volumes:    []corev1.Volume{{Name: volumeWorker, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		HostPID:    host.PID, HostNetwork: host.Network,
	}
	if host.Network {
		pod.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	if seesRoot(host) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{
			Name: volumeHost, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
		})
	}
	return pod
}

// ownContainer is one that runs the operator's program: it needs next to nothing.
func ownContainer(name, image string, command []string, mounts ...corev1.VolumeMount) corev1.Container {
	context := restricted()
	context.ReadOnlyRootFilesystem = new(true)
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: command, VolumeMounts: mounts,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("8Mi"),
		}},
		SecurityContext: context,
	}
}

// workContainer is the work, or the cleanup, which is of no round.
func workContainer(goop *v1alpha1.Goop, argv []string, round string, images Images, folder corev1.VolumeMount) corev1.Container {
	container := corev1.Container{
		Name: v1alpha1.WorkContainer, Image: goop.Spec.Image,
		Command:      append([]string{workerFile, "--retries", strconv.Itoa(int(ptr.Deref(goop.Spec.Retries, 0))), "--"}, literally(argv)...),
		Env:          workEnv(goop, round),
		Resources:    ptr.Deref(goop.Spec.Resources, corev1.ResourceRequirements{}),
		VolumeMounts: []corev1.VolumeMount{folder},
	}
	if container.Image == "" {
		container.Image, container.ImagePullPolicy = images.Worker, corev1.PullIfNotPresent
	}
	host := ptr.Deref(goop.Spec.Host, v1alpha1.HostAccess{})
	if !asksForHost(goop) {
		container.SecurityContext = restricted()
	}
	switch host.Root {
	case v1alpha1.HostRootReadOnly:
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
			Name: volumeHost, MountPath: hostDir, ReadOnly: true, RecursiveReadOnly: new(corev1.RecursiveReadOnlyIfPossible),
		})
	case v1alpha1.HostRootReadWrite:
		// What is mounted on the node later is seen too. With a recursive ReadOnly the API server does not allow it.
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
			Name: volumeHost, MountPath: hostDir, MountPropagation: new(corev1.MountPropagationHostToContainer),
		})
	}
	return container
}

func workEnv(goop *v1alpha1.Goop, round string) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
		{Name: "GOOP_NAME", Value: goop.Name},
	}
	if round != "" {
		env = append(env, corev1.EnvVar{Name: "GOOP_ROUND", Value: round})
	}
	for _, one := range goop.Spec.Env {
		env = append(env, corev1.EnvVar(one))
	}
	return env
}

// literally writes arguments so that a program is given them as they are: the kubelet makes one $ of two, and
// replaces $(NAME).
func literally(argv []string) []string {
	escaped := make([]string, len(argv))
	for i, arg := range argv {
		escaped[i] = strings.ReplaceAll(arg, "$", "$$")
	}
	return escaped
}

// restricted is what the Pod Security Standard of that name asks for.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsNonRoot:             new(true),
		RunAsUser:                new(int64(nonRoot)),
		RunAsGroup:               new(int64(nonRoot)),
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func seesRoot(host v1alpha1.HostAccess) bool {
	return host.Root != "" && host.Root != v1alpha1.HostRootNone
}

// asksForHost tells whether a Goop asks for any access to its nodes.
func asksForHost(goop *v1alpha1.Goop) bool {
	host := goop.Spec.Host
	return host != nil && (seesRoot(*host) || host.PID || host.Network)
}
