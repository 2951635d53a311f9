package controller

import (
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/record"
)

const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "goop-operator"

	// labelNone is a label that no node has. A DaemonSet whose pods select it runs on no node.
	labelNone = "goop.example.com/none"

	installContainer = "install"
	pauseContainer   = "pause"

	// workerDir is the directory that the containers of a worker share: it holds the program and the record.
	workerDir    = "/goop"
	workerImage  = "/goop-worker"
	workerFile   = workerDir + "/worker"
	hostDir      = "/host"
	volumeWorker = "goop"
	volumeHost   = "host"

	// nonRoot is the user of all containers that do not need root.
	nonRoot = 65532

	// gracePeriodSeconds is how long a worker may take to terminate.
	gracePeriodSeconds = 10
)

// Images are the container images of workers' pods.
type Images struct {
	// Operator is the image of the operator. It contains the program that runs the work.
	Operator string
	// Worker is the image for Goops without spec.image.
	Worker string
}

// roundName is the name of the DaemonSet of a round.
func roundName(goop string, round int) string { return goop + "-" + strconv.Itoa(round) }

// roundNumber returns the number of the round whose DaemonSet has that name; false if it is not the name of a round.
func roundNumber(goop, name string) (int, bool) {
	number, err := strconv.Atoi(strings.TrimPrefix(name, goop+"-"))
	return number, err == nil && number >= 0 && name == roundName(goop, number)
}

// roundOfPod returns the round in the label of a pod; false if the label is not a valid round number.
func roundOfPod(pod *corev1.Pod) (int, bool) {
	number, err := strconv.Atoi(pod.Labels[v1alpha1.LabelRound])
	if err != nil || number < 0 || number >= v1alpha1.MaxRounds {
		return 0, false
	}
	return number, true
}

// cleanupName is the name of the DaemonSet of the cleanup.
func cleanupName(goop string) string { return goop + "-cleanup" }

// dependentLabels are the labels of all dependents of a Goop.
func dependentLabels(goop *v1alpha1.Goop) map[string]string {
	return map[string]string{
		labelName: "goop", labelInstance: goop.Name, labelManagedBy: managedBy,
		v1alpha1.LabelGoop: goop.Name,
	}
}

// podLabels are the labels of a DaemonSet and of its pods, which may outlive the DaemonSet by some seconds.
func podLabels(goop *v1alpha1.Goop, role string) map[string]string {
	labels := dependentLabels(goop)
	labels[v1alpha1.LabelRole], labels[v1alpha1.LabelGoopUID] = role, string(goop.UID)
	return labels
}

// roundLabels are the labels of the DaemonSet of a round, and of its pods.
func roundLabels(goop *v1alpha1.Goop, round int) map[string]string {
	labels := podLabels(goop, v1alpha1.RoleWork)
	labels[v1alpha1.LabelRound] = strconv.Itoa(round)
	return labels
}

// dependentMeta makes the Goop the controller of a dependent: the garbage collector deletes the dependent after the Goop,
// and events of the dependent trigger a reconciliation of the Goop.
func dependentMeta(goop *v1alpha1.Goop, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: goop.Namespace, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(goop, v1alpha1.SchemeGroupVersion.WithKind("Goop"))},
	}
}

// isOurs reports whether any Goop is the controller of the object.
func isOurs(object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == "Goop" && owner.APIVersion == v1alpha1.SchemeGroupVersion.String()
}

// withoutBlocking removes blockOwnerDeletion, because the finalizer keeps the Goop until the cleanup has ended. In a
// foreground deletion the garbage collector may delete these dependents nevertheless: see lostRounds.
func withoutBlocking(meta metav1.ObjectMeta) metav1.ObjectMeta {
	meta.OwnerReferences[0].BlockOwnerDeletion = nil
	return meta
}

// desiredRound is the DaemonSet of a round.
func desiredRound(goop *v1alpha1.Goop, round plan.Round, images Images) *appsv1.DaemonSet {
	labels := roundLabels(goop, round.Number)
	pod := desiredPod(goop, goop.Spec.Cmd, strconv.Itoa(round.Number), images)
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
		Spec:       daemonSetSpec(labels, pod),
	}
}

// desiredCleanup is the DaemonSet that runs the cleanup on these nodes. It tolerates all taints and selects no labels,
// because the labels and taints of a node may have changed since the work ran there.
func desiredCleanup(goop *v1alpha1.Goop, nodes []string, images Images) *appsv1.DaemonSet {
	labels := podLabels(goop, v1alpha1.RoleCleanup)
	pod := desiredPod(goop, goop.Spec.CleanupCmd, "", images)
	pod.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: nodeSelectorOf(plan.Round{Nodes: nodes}),
	}}
	return &appsv1.DaemonSet{
		ObjectMeta: withoutBlocking(dependentMeta(goop, cleanupName(goop.Name), labels)),
		Spec:       daemonSetSpec(labels, pod),
	}
}

// daemonSetSpec uses the update strategy OnDelete: with a rolling update, each change of the affinity would run finished
// work again on nodes that stay. It keeps no revision history, because each revision would hold a list of all nodes. The
// selector includes the uid of the Goop: a DaemonSet adopts pods without an owner that match its selector, and those of
// an earlier Goop of the same name have run another command.
func daemonSetSpec(labels map[string]string, pod corev1.PodSpec) appsv1.DaemonSetSpec {
	selector := maps.Clone(labels)
	maps.DeleteFunc(selector, func(name, _ string) bool {
		return name == labelName || name == labelInstance || name == labelManagedBy
	})
	return appsv1.DaemonSetSpec{
		Selector:             &metav1.LabelSelector{MatchLabels: selector},
		UpdateStrategy:       appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
		RevisionHistoryLimit: new(int32(0)),
		Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)}, Spec: pod},
	}
}

// desiredPod is the pod of a worker. The work is an init container, because the kubelet restarts the other containers of
// a DaemonSet's pod when they end. The only other container does nothing.
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
			ownContainer(goop, installContainer, images.Operator, []string{workerImage, "install", workerFile}, folder),
			workContainer(goop, argv, round, images, folder),
		},
		Containers: []corev1.Container{ownContainer(goop, pauseContainer, images.Operator, []string{workerImage, "pause"})},
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

// ownContainer is a container that runs the operator's own program. It has the resources of the work: a quota, or a LimitRange,
// asks each container for them. The pod needs no more for that, because its containers run one after the other.
func ownContainer(goop *v1alpha1.Goop, name, image string, command []string, mounts ...corev1.VolumeMount) corev1.Container {
	context := restricted()
	context.ReadOnlyRootFilesystem = new(true)
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: command, VolumeMounts: mounts,
		Resources:       ptr.Deref(goop.Spec.Resources, corev1.ResourceRequirements{}),
		SecurityContext: context,
	}
}

// workContainer runs the work, or the cleanup, which has no round.
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
		// The container also sees what is mounted on the node later. The API server rejects this for a recursive read-only
		// mount.
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

// literally escapes arguments so that the program gets them unchanged: the kubelet replaces $$ by $, and expands $(NAME).
func literally(argv []string) []string {
	escaped := make([]string, len(argv))
	for i, arg := range argv {
		escaped[i] = strings.ReplaceAll(arg, "$", "$$")
	}
	return escaped
}

// restricted is the security context that the Pod Security Standard "restricted" requires.
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

// asksForHost reports whether a Goop requests any host access.
func asksForHost(goop *v1alpha1.Goop) bool {
	host := goop.Spec.Host
	return host != nil && (seesRoot(*host) || host.PID || host.Network)
}

// desiredShard is a ConfigMap of the record. For a Goop with a cleanupCmd it has a finalizer: in a foreground deletion,
// or with its namespace, it would otherwise be deleted before the cleanup has read it.
func desiredShard(goop *v1alpha1.Goop, shard record.Shard) *corev1.ConfigMap {
	meta := withoutBlocking(dependentMeta(goop, shardName(goop.Name, shard.Number), dependentLabels(goop)))
	if len(goop.Spec.CleanupCmd) > 0 {
		meta.Finalizers = []string{v1alpha1.CleanupFinalizer}
	}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{record.Key: shard.Text}}
}

// shardName is the name of a ConfigMap of the record.
func shardName(goop string, number int) string { return goop + "-record-" + strconv.Itoa(number) }
