package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"example.com/workbook/shared/engine"
	"example.com/workbook/shared/step"
)

// deleteKind removes the containers of a cluster, if there are any and an engine to ask. Without one it fails if wanted,
// or if there are signs that a cluster was made: its containers come back with the engine.
func deleteKind(ctx context.Context, out io.Writer, name string, wanted bool) error {
	k, err := newKind(ctx, out, name)
	if errors.Is(err, engine.ErrNone) || errors.Is(err, engine.ErrDenied) {
		made, madeErr := kindWasMade(name)
		if wanted || made || madeErr != nil {
			return errors.Join(fmt.Errorf("the kind cluster %s cannot be ended: %w", name, err), madeErr)
		}
		return nil
	}
	if err != nil {
		return err
	}
	list, err := k.provider.ListNodes(name)
	if err != nil {
		return fmt.Errorf("listing the nodes of %s: %w", name, err)
	}
	if len(list) > 0 {
		if err := k.checkOwn(ctx); err != nil {
			return err
		}
		err := step.Run(ctx, out, "ending the kind cluster "+name, func(context.Context) error { return k.deleteNodes() })
		if err != nil {
			return fmt.Errorf("ending the kind cluster %s: %w", name, err)
		}
	}
	dir, err := stateDir(KindKind, name)
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(dir), removeContext(ContextName(KindKind, name)))
}

// deleteNodes has kind remove the containers.
func (k *kindCluster) deleteNodes() error {
	return k.withScratch(func(kubeconfig string) error { return k.provider.Delete(k.name, kubeconfig) })
}

// withScratch gives kind a kubeconfig of its own to edit. The repository's it may not: the existence of a file is kind's
// lock, and one that a killed program left would be in the way of everything.
func (k *kindCluster) withScratch(run func(kubeconfig string) error) error {
	dir, err := stateDir(KindKind, k.name)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := errors.Join(os.RemoveAll(path), os.RemoveAll(path+".lock")); err != nil {
		return fmt.Errorf("preparing a kubeconfig for kind: %w", err)
	}
	defer os.Remove(path) // it has the administrator's credentials
	return run(path)
}

// checkOwn fails for containers that the harness did not make. Its own control plane has the folder of the audit policy
// mounted, which is made before any container; one that was interrupted may have no control plane.
func (k *kindCluster) checkOwn(ctx context.Context) error {
	all, err := k.provider.ListNodes(k.name)
	if err != nil {
		return fmt.Errorf("listing the nodes of %s: %w", k.name, err)
	}
	args := []string{"inspect", "--format", "{{range .Mounts}}{{.Destination}} {{.Source}}{{println}}{{end}}"}
	var hasControlPlane bool
	for _, node := range all {
		args = append(args, node.String())
		hasControlPlane = hasControlPlane || strings.HasPrefix(node.String(), k.name+"-control-plane")
	}
	mounts, err := exec.CommandContext(ctx, k.engine.Name, args...).Output()
	if err != nil {
		return fmt.Errorf("asking %s for the mounts of %s: %w", k.engine.Name, k.name, err)
	}
	state, err := stateDir(KindKind, k.name)
	if err != nil {
		return err
	}
	// The cache may be another one, as under sudo.
	policy := filepath.Join("/", filepath.Base(filepath.Dir(state)), filepath.Base(state), "audit")
	if slices.ContainsFunc(strings.Split(string(mounts), "\n"), func(mount string) bool {
		return strings.HasPrefix(mount, auditPolicyDir+" ") && strings.HasSuffix(mount, policy)
	}) {
		return nil
	}
	if _, err := os.Stat(state); err == nil && !hasControlPlane {
		return nil
	}
	return fmt.Errorf("there is a kind cluster %s that the harness did not make: choose another name by CLUSTER_NAME, or end it yourself: kind delete cluster --name %s",
		k.name, k.name)
}

// kindWasMade reports whether there are signs on disk that a cluster was made: its folder, or its context.
func kindWasMade(name string) (bool, error) {
	dir, err := stateDir(KindKind, name)
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(dir); err == nil {
		return true, nil
	}
	path, err := KubeconfigPath()
	if err != nil {
		return false, nil //nolint:nilerr // outside a repository there is no kubeconfig of its own
	}
	c, err := clientcmd.LoadFromFile(path)
	return err == nil && c.Contexts[ContextName(KindKind, name)] != nil, nil
}
