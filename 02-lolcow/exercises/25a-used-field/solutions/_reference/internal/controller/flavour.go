package controller

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// flavourVariable is the variable of the server's container that has the flavour.
const flavourVariable = "FLAVOUR"

// maxFlavour bounds a flavour, in characters, as the markers of the API do.
const maxFlavour = 20

// flavourEnv is the flavour as variables of a container. The kubelet expands $(NAME) in a value, and halves $$, as it does in
// arguments, so each $ is doubled.
func flavourEnv(flavour string) []*corev1ac.EnvVarApplyConfiguration {
	if flavour == "" {
		return nil
	}
	value := strings.ReplaceAll(flavour, "$", "$$")
	return []*corev1ac.EnvVarApplyConfiguration{corev1ac.EnvVar().WithName(flavourVariable).WithValue(value)}
}

// servedFlavour is the flavour of all pods. During a rollout that is not known, and the one of before stays.
func servedFlavour(deployment *appsv1.Deployment, before string) string {
	if deployment == nil || deployment.Status.Replicas == 0 {
		return ""
	}
	if !rolledOut(deployment) {
		return before
	}
	for _, variable := range ourContainer(deployment.Spec.Template.Spec).Env {
		if variable.Name == flavourVariable {
			// Another client may have set a longer one, while the spec has none.
			flavour := []rune(strings.ReplaceAll(variable.Value, "$$", "$"))
			return string(flavour[:min(len(flavour), maxFlavour)])
		}
	}
	return ""
}
