package bench

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/bench"
)

// bareOwner is the field owner of the bare client.
const bareOwner = "bare-client"

// bareWriter makes the three writes of each Lolcow with a client that does nothing else: it reads nothing and watches
// nothing. It is the operator's ServiceAccount: what the API server spends on checking permissions is part of every request.
func (r runner) bareWriter() bench.Writer {
	c, err := client.New(r.ConfigOf(r.Operator().ServiceAccount()), client.Options{Scheme: r.Client.Scheme(), Mapper: r.Client.RESTMapper()})
	r.Must(err)
	return bench.Writer{Name: "bare client", User: r.Operator().User(), Start: func(namespace string) bench.Running {
		var all v1alpha1.LolcowList
		r.Must(r.Client.List(r.Ctx, &all, client.InNamespace(namespace)))
		return bench.Running{Pid: bench.Here(), Work: func() {
			r.InParallel(len(all.Items), concurrency, func(ctx context.Context, i int) error {
				return writeBare(ctx, c, &all.Items[i], r.Env.Images["lolcow"])
			})
		}, Stop: func() {}}
	}}
}

// writeBare applies the dependents of one Lolcow and writes its status, which has the port that the response names.
func writeBare(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow, image string) error {
	deployment, service := deploymentOf(lolcow, image), serviceOf(lolcow)
	if err := c.Apply(ctx, deployment, client.FieldOwner(bareOwner)); err != nil {
		return err
	}
	if err := c.Apply(ctx, service, client.FieldOwner(bareOwner)); err != nil {
		return err
	}
	before := lolcow.DeepCopy()
	setStatus(lolcow, *service.Spec.Ports[0].NodePort)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return c.Status().Patch(ctx, lolcow, patch, client.FieldOwner(bareOwner))
}

// setStatus is the status that the operator writes of a Lolcow whose pods are Pending.
func setStatus(lolcow *v1alpha1.Lolcow, port int32) {
	lolcow.Status.ObservedGeneration, lolcow.Status.Port = lolcow.Generation, port
	apimeta.SetStatusCondition(&lolcow.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRollingOut,
		Message: "waiting for every replica to be replaced and available", ObservedGeneration: lolcow.Generation,
	})
}
