package controller

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// TestGoopSize has specs of the maximum size, and with one character more, for each field and for all together.
func TestGoopSize(t *testing.T) {
	t.Parallel()
	const most, tooLarge = 131072, "cmd, cleanupCmd and env must have at most 131072 characters in all"
	w := newTestEnv(t)
	args := func(n int) string { return "[" + letters(8192) + strings.Repeat(", "+letters(8192), n-1) }
	values := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("{name: E%02d, value: %s}", i, letters(32768)))
		}
		return strings.Join(all, ", ")
	}
	rows := map[string]apiRow{}
	for name, of := range map[string]struct {
		format string
		taken  int
	}{
		"cmd":        {"{cmd: " + args(15) + ", a, %s]}", 15*8192 + 1},
		"cleanupCmd": {"{cmd: [a], cleanupCmd: " + args(15) + ", %s]}", 15*8192 + 1},
		"env":        {"{cmd: [a], env: [" + values(3) + ", {name: X, value: %s}]}", 3*(3+32768) + 2},
		"all":        {"{cmd: " + args(5) + "], cleanupCmd: " + args(5) + "], env: [" + values(1) + ", {name: F, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}, {name: X, value: %s}]}", 10*8192 + 3 + 32768 + 2},
	} {
		rows[name+" of the most"] = apiRow{fmt.Sprintf(of.format, letters(most-of.taken)), "", ""}
		rows[name+" of more"] = apiRow{fmt.Sprintf(of.format, letters(most-of.taken+1)), "spec", tooLarge}
	}
	w.checkRows(t, rows)
}

// The largest valid Goop has room for its status and for a finalizer. Every character of it takes six bytes.
func TestTheLargestGoopHasAStatus(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	goop := &v1alpha1.Goop{Spec: f.spec(cleanup)}
	goop.Namespace, goop.Name = f.namespace, "job"
	goop.Annotations = map[string]string{"large": letters(255 << 10)}
	for i := range 256 {
		goop.Spec.Env = append(goop.Spec.Env, v1alpha1.EnvVar{Name: fmt.Sprintf("%0100d", i), Value: strings.Repeat("\x01", 410)})
	}
	f.Expect(f.client.Create(f.ctx, goop)).To(Succeed())
	for range v1alpha1.MaxFailures {
		goop.Status.Failures = append(goop.Status.Failures, v1alpha1.Failure{Node: letters(253), Output: strings.Repeat("\n", 1152)})
	}
	f.Expect(f.client.Status().Update(f.ctx, goop)).To(Succeed())
	goop.Finalizers = []string{v1alpha1.CleanupFinalizer}
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, goop)).To(Succeed())
	f.Expect(f.client.Patch(f.ctx, goop, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	f.Expect(f.gone()).To(BeTrue())
}

// The names in valueFrom have no limit of their own. A Goop that just fits into etcd has no room for a status. An Event
// says what to do, and the retries have a back-off.
func TestGoopThatIsTooLarge(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	create := func(first int) error {
		goop := &v1alpha1.Goop{Spec: f.spec()}
		goop.Namespace, goop.Name = f.namespace, "job"
		for i := range 250 {
			from := &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "k"}}
			from.ConfigMapKeyRef.Name = letters(6_000)
			if i == 0 {
				from.ConfigMapKeyRef.Name = letters(first)
			}
			goop.Spec.Env = append(goop.Spec.Env, v1alpha1.EnvVar{Name: fmt.Sprintf("E%d", i), ValueFrom: from})
		}
		return f.client.Create(f.ctx, goop)
	}
	fits, fitsNot := 1, 100_000
	for fitsNot-fits > 50 {
		middle := (fits + fitsNot) / 2
		if create(middle) != nil {
			fitsNot = middle
			continue
		}
		fits = middle
		f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	}
	f.Expect(create(fits)).To(Succeed())
	for range 6 {
		_, err := f.reconcile()
		f.Expect(err).To(HaveOccurred())
	}
	f.Expect(f.requests.written()).To(BeNumerically("<=", 1), "%v", f.requests.writes)
	f.Expect(f.recorded()).To(HaveEach(HavePrefix("Warning ApplyFailed the object is so large that its status cannot be stored")))
}
