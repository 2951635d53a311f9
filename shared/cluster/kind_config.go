package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"example.com/workbook/shared/config"
)

// Where the control plane's node has the audit policy and the audit log.
const (
	auditPolicyDir = "/etc/kubernetes/audit"
	auditLogDir    = "/var/log/kubernetes/audit"
)

// kubeadmPatch is merged into what kind gives kubeadm, whose flags stay. The controllers of the controller manager may each
// send more requests than the 20 a second that are the default, and the scheduler more than 50: several specs at once make
// and delete that many pods.
var kubeadmPatch = `
kind: ClusterConfiguration
apiServer:
  extraArgs:
  - {name: enable-admission-plugins, value: "` + admissionPlugins + `"}
  - {name: audit-policy-file, value: ` + auditPolicyDir + `/policy.yaml}
  - {name: audit-log-path, value: ` + auditLogDir + `/audit.log}
  - {name: audit-log-maxsize, value: "` + auditMaxSize + `"}
  - {name: audit-log-maxbackup, value: "` + auditMaxBackup + `"}
  extraVolumes:
  - {name: audit-policy, hostPath: ` + auditPolicyDir + `, mountPath: ` + auditPolicyDir + `, readOnly: true, pathType: Directory}
  - {name: audit-log, hostPath: ` + auditLogDir + `, mountPath: ` + auditLogDir + `, readOnly: false, pathType: DirectoryOrCreate}
controllerManager:
  extraArgs:
  - {name: kube-api-qps, value: "200"}
  - {name: kube-api-burst, value: "400"}
scheduler:
  extraArgs:
  - {name: kube-api-qps, value: "200"}
  - {name: kube-api-burst, value: "400"}
`

// kubeletPatch lets the kubelet start on a host that still has cgroup v1; others do not notice. And it lets pods use
// an image that was loaded into the node, also where the same image was pulled from a registry before: unasked, the
// kubelet takes it for the registry's then, and wants to see every pod's right to it by pulling.
// See https://kubernetes.io/docs/concepts/containers/images/#ensureimagepullcredentialverification. A container that ends
// is started again within a second and not within minutes: specs kill operators again and again.
const kubeletPatch = `
kind: KubeletConfiguration
failCgroupV1: false
imagePullCredentialsVerificationPolicy: NeverVerify
crashLoopBackOff: {maxContainerRestartPeriod: 1s}
`

// kindConfig is one control plane and two workers. policyDir is a folder of this machine that
// holds policy.yaml.
func kindConfig(policyDir string) *v1alpha4.Cluster {
	return &v1alpha4.Cluster{
		TypeMeta:                v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		KubeadmConfigPatches:    []string{kubeadmPatch, kubeletPatch},
		ContainerdConfigPatches: registryPatches,
		Nodes: []v1alpha4.Node{
			{
				Role:        v1alpha4.ControlPlaneRole,
				ExtraMounts: []v1alpha4.Mount{{HostPath: policyDir, ContainerPath: auditPolicyDir, Readonly: true}},
			},
			{Role: v1alpha4.WorkerRole},
			{Role: v1alpha4.WorkerRole},
		},
	}
}

// kindHash changes with everything that a kind cluster is made from, but for the node image.
func kindHash() string {
	return hash(kubeadmPatch, kubeletPatch, fmt.Sprint(registryPatches), string(auditPolicy), fmt.Sprintf("%+v", kindConfig("").Nodes))
}

// writeAuditPolicy puts the policy into a folder that can be mounted into a node.
func writeAuditPolicy(name string) (dir string, err error) {
	state, err := stateDir(KindKind, name)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(state, "audit")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("writing the audit policy: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), auditPolicy, 0o644); err != nil {
		return "", fmt.Errorf("writing the audit policy: %w", err)
	}
	return dir, nil
}

// NodeImage returns the reference of the image that the nodes of kind are made of, after pulling or building it if
// need be.
func NodeImage(ctx context.Context, out io.Writer) (string, error) {
	harness, err := config.Harness()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(harness, "scripts", "node-image.sh"))
	// The script removes what it has half done when it is asked to end.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("getting the node image: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	image := strings.TrimSpace(lines[len(lines)-1])
	if image == "" {
		return "", fmt.Errorf("getting the node image: scripts/node-image.sh named none")
	}
	return image, nil
}
