package binaries

import (
	"fmt"
	"slices"
	"strings"

	"example.com/workbook/shared/config"
)

// component is one program and how it is built from the Go module proxy.
type component struct {
	name    string
	version string
	// pkg is the main package.
	pkg string
	// module is the folder under scripts/components whose go.mod pins pkg. Empty: pkg builds by
	// `go install pkg@version`.
	module string
	// stamps are the -X flags that make the program report its version.
	stamps []string
	// note tells the reader what to expect of a long build.
	note string
}

// components returns every program the harness can provide, by name.
func components() map[string]component {
	out := map[string]component{}
	add := func(c component) {
		out[c.name] = c
	}

	kubernetes := config.Get("KUBERNETES_VERSION")
	for _, name := range []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubeadm", "kube-proxy", "kubectl",
	} {
		c := component{
			name: name, version: kubernetes, module: "kubernetes",
			pkg: "k8s.io/kubernetes/cmd/" + name, stamps: kubernetesStamps(kubernetes),
		}
		if name == "kube-apiserver" {
			c.note = "about 5 minutes on 2 cores, once"
		}
		add(c)
	}
	add(component{name: "etcd", version: config.Get("ETCD_VERSION"), module: "etcd", pkg: "go.etcd.io/etcd/server/v3"})

	containerd := config.Get("CONTAINERD_VERSION")
	for _, name := range []string{"containerd", "ctr", "containerd-shim-runc-v2"} {
		add(component{
			name: name, version: containerd, pkg: "github.com/containerd/containerd/v2/cmd/" + name,
			stamps: []string{"github.com/containerd/containerd/v2/version.Version=" + containerd},
		})
	}
	for _, plugin := range []string{"ipam/host-local", "main/loopback", "main/ptp", "meta/portmap"} {
		_, name, _ := strings.Cut(plugin, "/")
		add(component{
			name: name, version: config.Get("CNI_PLUGINS_VERSION"),
			pkg: "github.com/containernetworking/plugins/plugins/" + plugin,
		})
	}
	add(component{name: "coredns", version: config.Get("COREDNS_VERSION"), pkg: "github.com/coredns/coredns"})
	add(component{
		name: "local-path-provisioner", version: config.Get("LOCAL_PATH_PROVISIONER_VERSION"),
		pkg: "github.com/rancher/local-path-provisioner",
	})
	add(component{name: "kwok", version: config.Get("KWOK_VERSION"), pkg: "sigs.k8s.io/kwok/cmd/kwok"})
	return out
}

// kubernetesStamps are the -X flags of Kubernetes' own release build that clients look at: kubectl
// and kubeadm compare major and minor versions with each other.
func kubernetesStamps(version string) []string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	var out []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		out = append(out,
			fmt.Sprintf("%s.gitVersion=%s", pkg, version),
			fmt.Sprintf("%s.gitMajor=%s", pkg, parts[0]),
			fmt.Sprintf("%s.gitMinor=%s", pkg, parts[1]),
			fmt.Sprintf("%s.gitTreeState=clean", pkg))
	}
	return out
}

// Names returns the names that Ensure knows, sorted.
func Names() []string {
	var out []string
	for name := range components() {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
