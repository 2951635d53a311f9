package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// builtinKinds are the kinds of Kubernetes 1.37, of its alpha and beta versions too.
var builtinKinds = strings.Fields(`
APIService CSIDriver CSINode CSIStorageCapacity CertificateSigningRequest ClusterRole ClusterRoleBinding ClusterTrustBundle
ComponentStatus CompositePodGroup ConfigMap ControllerRevision CronJob CustomResourceDefinition DaemonSet Deployment
DeviceClass DeviceTaintRule EndpointSlice Endpoints Event Eviction EvictionRequest FlowSchema HorizontalPodAutoscaler
IPAddress ImageReview Ingress IngressClass Job Lease LeaseCandidate LimitRange LocalSubjectAccessReview
MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration Namespace NetworkPolicy Node
PersistentVolume PersistentVolumeClaim Pod PodCertificateRequest PodDisruptionBudget PodGroup PodTemplate PriorityClass
PriorityLevelConfiguration ReplicaSet ReplicationController ResourceClaim ResourceClaimTemplate ResourcePoolStatusRequest
ResourceQuota ResourceSlice Role RoleBinding RuntimeClass Secret SelfSubjectAccessReview SelfSubjectReview
SelfSubjectRulesReview Service ServiceAccount ServiceCIDR StatefulSet StorageClass StorageVersion StorageVersionMigration
SubjectAccessReview TokenReview ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration
VolumeAttachment VolumeAttributesClass Workload`)

// builtinShortNames are their abbreviations, and all, a category.
var builtinShortNames = strings.Fields(`all cj cm crd crds cs csr deploy ds ep ev hpa ing ip limits netpol no ns pc pdb po
pv pvc quota rc rs sa sc sts svc vac`)

// builtinNames says which kind of Kubernetes kubectl takes a word for.
var builtinNames = func() map[string]string {
	names := map[string]string{}
	for _, short := range builtinShortNames {
		names[short] = "a short name"
	}
	for _, kind := range builtinKinds {
		names[strings.ToLower(kind)], names[plural(strings.ToLower(kind))] = "the "+kind, "the "+kind
	}
	return names
}()

// builtinCommands are kubectl's own, of one word.
var builtinCommands = strings.Fields(`alpha annotate apply attach auth autoscale certificate completion config cordon cp create
debug delete describe diff drain edit events exec explain expose get help kuberc kustomize label logs options patch plugin proxy
replace rollout run scale set taint top uncordon version wait`)

// kubectlTakes says what kubectl would take the names of a kind for, or nothing.
func kubectlTakes(s *stage, kind string) string {
	for _, resource := range s.Resources {
		lower := strings.ToLower(s.renamedKind(resource.Kind, kind))
		for _, word := range []string{lower, plural(lower)} {
			if what := builtinNames[word]; what != "" {
				return fmt.Sprintf("kubectl takes %s for %s of Kubernetes itself", word, what)
			}
		}
	}
	command := strings.ToLower(kind)
	if s.hasPlugin() && slices.Contains(builtinCommands, command) {
		return fmt.Sprintf("kubectl would never call the plugin kubectl-%s, for kubectl %s is a command of its own", command, command)
	}
	return ""
}

// hasPlugin reports whether the stage has a plugin of kubectl that is called after the kind.
func (s *stage) hasPlugin() bool {
	folder := "cmd/kubectl-" + strings.ToLower(s.primary()) + "/"
	return slices.ContainsFunc(s.files, func(file string) bool { return strings.HasPrefix(file, folder) })
}

// requiredBy returns the go.mod of the copy that would require the copy's own module path from elsewhere, or nothing.
func requiredBy(repo string, o options, s *stage) (string, error) {
	for _, file := range []string{s.dir + "/go.mod", s.dir + "/test/e2e/go.mod", "shared/go.mod", "scripts/tools/go.mod"} {
		content, err := os.ReadFile(filepath.Join(repo, file))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("reading what modules require: %w", err)
		}
		mod, err := modfile.Parse(file, content, nil)
		if err != nil {
			return "", err // it names the file
		}
		for _, require := range mod.Require {
			// One of our own is renamed.
			if require.Mod.Path == o.Module && !slices.ContainsFunc(mod.Replace, func(r *modfile.Replace) bool { return r.Old.Path == o.Module }) {
				return file, nil
			}
		}
	}
	return "", nil
}
