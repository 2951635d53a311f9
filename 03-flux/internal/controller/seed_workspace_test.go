package controller

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// cloud simulates a cloud provider that starts a machine for each request. Two requests with the same nonce are the
// same request: the second one gets the response of the first one.
type cloud struct {
	started int
	byNonce map[string]string
}

func (c *cloud) launch(nonce string) (machine string) {
	if known := c.byNonce[nonce]; nonce != "" && known != "" {
		return known
	}
	c.started++
	machine = fmt.Sprintf("machine-%d", c.started)
	c.byNonce[nonce] = machine
	return machine
}

// The points of a reconciliation at which the operator may crash.
const (
	beforeTheNonceIsWritten = iota
	beforeTheLaunch
	beforeTheResponseIsStored
	afterAll
)

// launcher starts one machine for the Flux "bees", by the rules of the advice in chapter 19. The state for the next
// reconciliation is in its workspace: an object of the Flux's name that the Flux owns, and that no controller
// reconciles.
type launcher struct {
	*setupTestEnv
	cloud *cloud
	// nonce creates the nonce of a launch. keeps: it is written to the workspace before it is used.
	nonce   func() string
	keeps   bool
	crashAt int
}

// reach crashes the operator once, if this is the point.
func (l *launcher) reach(place int) error {
	if l.crashAt != place {
		return nil
	}
	l.crashAt = -1
	return errCrash
}

// reconcile reads the workspace from the API server.
func (l *launcher) reconcile() error {
	workspace := fetch[corev1.ConfigMap](l.setupTestEnv)
	if workspace == nil {
		workspace = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: l.flux.Name, Namespace: l.flux.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(l.flux, v1alpha1.SchemeGroupVersion.WithKind("Flux"))},
		}}
		if err := l.client.Create(l.ctx, workspace); err != nil {
			return err
		}
	}
	if workspace.Data["machine"] != "" {
		return nil
	}
	// A nonce that still exists means that the launch may have been requested: the same nonce is used again.
	nonce := workspace.Data["nonce"]
	if nonce == "" {
		nonce = l.nonce()
	}
	if err := l.reach(beforeTheNonceIsWritten); err != nil {
		return err
	}
	if l.keeps {
		workspace.Data = map[string]string{"nonce": nonce}
		if err := l.client.Update(l.ctx, workspace); err != nil {
			return err
		}
	}
	if err := l.reach(beforeTheLaunch); err != nil {
		return err
	}
	machine := l.cloud.launch(nonce)
	if err := l.reach(beforeTheResponseIsStored); err != nil {
		return err
	}
	// One write stores the response and removes the nonce.
	workspace.Data = map[string]string{"machine": machine}
	if err := l.client.Update(l.ctx, workspace); err != nil {
		return err
	}
	return l.reach(afterAll)
}

// The story of that advice: an EC2 instance that must not be launched twice.
func TestSeedWisdom_TheNonceIsWrittenBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		nonces   string
		keeps    bool
		machines []int
	}{
		{name: "no nonce", machines: []int{1, 1, 2, 1}},
		{name: "a nonce in the operator's memory", nonces: "nonce-%d", machines: []int{1, 1, 2, 1}},
		{name: "a nonce in the workspace", nonces: "nonce-%d", keeps: true, machines: []int{1, 1, 1, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var machines []int
			for place := beforeTheNonceIsWritten; place <= afterAll; place++ {
				b := newEmptySetupTestEnv(t)
				b.flux = b.makeFlux(fluxOf(1))
				made := 0
				l := &launcher{setupTestEnv: b, cloud: &cloud{byNonce: map[string]string{}}, keeps: test.keeps, crashAt: place}
				l.nonce = func() string {
					made++
					if test.nonces == "" {
						return ""
					}
					return fmt.Sprintf(test.nonces, made)
				}
				b.Expect(l.reconcile()).To(MatchError(errCrash))
				// The operator restarts with empty memory.
				b.Expect(l.reconcile()).To(Succeed())
				b.Expect(l.reconcile()).To(Succeed())
				machines = append(machines, l.cloud.started)
				workspace := b.configMap()
				b.Expect(workspace.Data).To(HaveLen(1))
				b.Expect(workspace.Data).To(HaveKey("machine"))
			}
			t.Logf("%s: machines started %v", test.name, machines)
			NewWithT(t).Expect(machines).To(Equal(test.machines))
		})
	}
}
