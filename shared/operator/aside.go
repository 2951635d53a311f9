package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// asideAnnotation on a Deployment that is set aside says how many replicas it had: the run may be killed, and another one
// ends what that began.
const asideAnnotation = "harness.example.com/replicas"

// setAside scales the operator's Deployment to 0, if it is in the cluster, and waits until its pods are gone: there must
// not be two writers. It says so before: the cluster may be in use. Close scales it back.
func (p *Process) setAside(ctx context.Context, out io.Writer, clients kubernetes.Interface) error {
	d := &Deployed{clients: clients, manifest: p.manifest}
	deployments, name := clients.AppsV1().Deployments(d.Namespace()), p.manifest.deployment.Name
	live, err := deployments.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for an operator that is deployed: %w", err)
	}
	replicas := int32(1) // what the API server makes of none
	if live.Spec.Replicas != nil {
		replicas = *live.Spec.Replicas
	}
	if before, err := strconv.ParseInt(live.Annotations[asideAnnotation], 10, 32); err == nil && replicas == 0 {
		replicas = int32(before)
	}
	if replicas > 0 {
		fmt.Fprintf(out, "==> the operator is deployed too: Deployment %s/%s is scaled to 0, and back to %d when this run ends\n", d.Namespace(), name, replicas)
		p.scaleBack = func(ctx context.Context) error {
			now, err := deployments.Get(ctx, name, metav1.GetOptions{})
			if err == nil && (now.Spec.Replicas == nil || *now.Spec.Replicas > 0) {
				return nil // another client has changed it meanwhile
			}
			if err == nil {
				err = scale(ctx, clients, p.manifest.deployment, replicas)
			}
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}
		if err := patchReplicas(ctx, clients, p.manifest.deployment, 0, fmt.Sprintf("\"%d\"", replicas)); err != nil {
			return err
		}
	}
	return d.waitPods(ctx, readyTimeout, "the operator's pods to be gone", func(pods []corev1.Pod) bool { return len(pods) == 0 })
}

// Close ends the processes, as Stop does, and scales a Deployment of the operator back to what it was before Run.
func (p *Process) Close(ctx context.Context) error {
	err := p.Stop(ctx)
	if p.scaleBack != nil {
		err = errors.Join(err, p.scaleBack(ctx))
	}
	return err
}
