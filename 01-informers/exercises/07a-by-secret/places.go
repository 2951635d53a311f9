package secret

import (
	corev1 "k8s.io/api/core/v1"
)

// places are those where a Pod can name a Secret, beside a volume. They are a part of the check, and of the solution: look for
// them in the type PodSpec before you read on.
var places = []struct {
	name string
	use  func(spec *corev1.PodSpec, secret string)
}{
	{"a projected volume", func(spec *corev1.PodSpec, secret string) {
		addVolume(spec, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{DownwardAPI: &corev1.DownwardAPIProjection{}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}},
		}}})
	}},
	{"an environment variable", func(spec *corev1.PodSpec, secret string) { spec.Containers[0].Env = env(secret) }},
	{"envFrom", func(spec *corev1.PodSpec, secret string) { spec.Containers[0].EnvFrom = envFrom(secret) }},
	{"an init container", func(spec *corev1.PodSpec, secret string) {
		spec.InitContainers = []corev1.Container{
			{Name: "first", Image: "example.com/none"},
			{Name: "second", Image: "example.com/none", Env: env(secret)},
		}
	}},
	{"an init container's envFrom", func(spec *corev1.PodSpec, secret string) {
		spec.InitContainers = []corev1.Container{{Name: "first", Image: "example.com/none", EnvFrom: envFrom(secret)}}
	}},
	{"imagePullSecrets", func(spec *corev1.PodSpec, secret string) {
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}, {Name: secret}}
	}},
}

// nothing is a Pod without a Secret, with all that may be mistaken for one.
func nothing(spec *corev1.PodSpec) {
	reference := corev1.LocalObjectReference{Name: "db"}
	spec.Containers[0].Env = []corev1.EnvVar{
		{Name: "WORD", Value: "db"},
		{Name: "KEY", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: reference, Key: "key"},
		}},
	}
	spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: reference}}}
	addVolume(spec, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: reference}})
}

func volume(secret string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		addVolume(spec, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}})
	}
}

func addVolume(spec *corev1.PodSpec, source corev1.VolumeSource) {
	name := string(rune('a' + len(spec.Volumes)))
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
}

func env(secret string) []corev1.EnvVar {
	return []corev1.EnvVar{{Name: "WORD", Value: "plain"}, {Name: "KEY", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "key"},
	}}}
}

func envFrom(secret string) []corev1.EnvFromSource {
	reference := corev1.LocalObjectReference{Name: secret}
	return []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: reference}}}
}
