package controller

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// cloud starts a machine for each request. Of two requests with the same nonce it takes the second for the first, asked
// again, and answers as it did then.
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

// The places in a pass at which the operator may crash.
const (
	beforeTheNonceIsWritten = iota
	beforeTheLaunch
	beforeTheAnswerIsStored
	afterAll
)

// launcher starts one machine for the Flux "bees", as the seeds' wisdom rules tell it. What it must know in the next
// pass is in its workspace: an object of the Flux's name, owned by it, that no controller reconciles.
type launcher struct {
	*bees
	cloud *cloud
	// nonce makes the nonce of a launch. keeps: it is written to the workspace before it is used.
	nonce   func() string
	keeps   bool
	crashAt int
}

// reach crashes the operator, once, if this is the place.
func (l *launcher) reach(place int) error {
	if l.crashAt != place {
		return nil
	}
	l.crashAt = -1
	return errCrash
}

// pass reads the workspace past every cache.
func (l *launcher) pass() error {
	workspace := fetch[corev1.ConfigMap](l.bees)
	if workspace == nil {
		workspace = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: l.flux.Name, Namespace: l.flux.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(l.flux, v1alpha1.GroupVersion.WithKind("Flux"))},
		}}
		if err := l.client.Create(l.ctx, workspace); err != nil {
			return err
		}
	}
	if workspace.Data["machine"] != "" {
		return nil
	}
	// A nonce that is still there means that the launch may have been asked for: the same is used again.
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
	if err := l.reach(beforeTheAnswerIsStored); err != nil {
		return err
	}
	// The answer is stored, and with the same write the nonce is gone.
	workspace.Data = map[string]string{"machine": machine}
	if err := l.client.Update(l.ctx, workspace); err != nil {
		return err
	}
	return l.reach(afterAll)
}

// The seeds' story of the EC2 instance that must not be launched twice.
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
				b := newHive(t)
				b.flux = b.makeFlux(fluxOf(1))
				made := 0
				l := &launcher{bees: b, cloud: &cloud{byNonce: map[string]string{}}, keeps: test.keeps, crashAt: place}
				l.nonce = func() string {
					made++
					if test.nonces == "" {
						return ""
					}
					return fmt.Sprintf(test.nonces, made)
				}
				b.Expect(l.pass()).To(MatchError(errCrash))
				// The operator starts again, and remembers nothing.
				b.Expect(l.pass()).To(Succeed())
				b.Expect(l.pass()).To(Succeed())
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
