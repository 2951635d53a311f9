// Package expect has what suites assert again and again, as verbs. Each waits up to a named limit
// and fails the spec with what it last saw.
package expect

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How long to wait, and how often to ask. On two busy cores a pod takes seconds to start.
const (
	// Soon is for what takes the operator one or two reconciliations.
	Soon = 20 * time.Second
	// Eventually is for what waits for containers to start or to end.
	Eventually = 90 * time.Second
	// SteadyState is how long nothing may happen in steady state.
	SteadyState = 3 * time.Second
	// Interval between two looks.
	Interval = 100 * time.Millisecond
)

// Condition waits until the object's condition has a status and, unless it is empty, a reason, for
// the object's present generation.
func Condition(ctx context.Context, c client.Client, obj client.Object, conditionType string, status metav1.ConditionStatus, reason string) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(g gomega.Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(gomega.Succeed())
		conditions, err := conditionsOf(obj)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		found := apimeta.FindStatusCondition(conditions, conditionType)
		g.Expect(found).NotTo(gomega.BeNil(), "%s has no condition %s, only %s", name(obj), conditionType, format.Object(conditions, 1))
		what := fmt.Sprintf("%s: condition %s is %s %s: %s", name(obj), conditionType, found.Status, found.Reason, found.Message)
		g.Expect(found.Status).To(gomega.Equal(status), what)
		if reason != "" {
			g.Expect(found.Reason).To(gomega.Equal(reason), what)
		}
		g.Expect(found.ObservedGeneration).To(gomega.Equal(obj.GetGeneration()), what+" (of an older generation)")
	}).WithTimeout(Eventually).WithPolling(Interval).Should(gomega.Succeed())
}

// Object gets the object again and again, and calls check with it, until the object exists and the assertions of check
// hold. They have to use the Gomega that check receives.
func Object[T client.Object](ctx context.Context, c client.Client, obj T, check func(gomega.Gomega, T)) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(g gomega.Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(gomega.Succeed())
		check(g, obj)
	}).WithTimeout(Eventually).WithPolling(Interval).Should(gomega.Succeed())
}

// Always asserts that the object satisfies check now and stays so for SteadyState.
func Always[T client.Object](ctx context.Context, c client.Client, obj T, check func(gomega.Gomega, T)) {
	ginkgo.GinkgoHelper()
	gomega.Consistently(ctx, func(g gomega.Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(gomega.Succeed())
		check(g, obj)
	}).WithTimeout(SteadyState).WithPolling(Interval).Should(gomega.Succeed())
}

// Gone waits until the object does not exist any more. Another one of the same name that came
// since is not the object, if obj has a UID.
func Gone(ctx context.Context, c client.Client, obj client.Object) {
	ginkgo.GinkgoHelper()
	uid := obj.GetUID()
	live := obj.DeepCopyObject().(client.Object)
	gomega.Eventually(ctx, func(g gomega.Gomega) {
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), live)
		if err == nil && uid != "" && live.GetUID() != uid {
			return
		}
		g.Expect(apierrors.IsNotFound(err)).To(gomega.BeTrue(), "%s is still there, or cannot be asked for: %v", name(obj), err)
	}).WithTimeout(Eventually).WithPolling(Interval).Should(gomega.Succeed())
}

// Rejected asserts that an error is the API server's rejection of an invalid object, and that its
// message has all of these parts.
func Rejected(err error, parts ...string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(err).To(gomega.HaveOccurred(), "the API server accepted what it should reject")
	gomega.Expect(apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err)).To(gomega.BeTrue(), "not a rejection: %v", err)
	for _, part := range parts {
		gomega.Expect(err.Error()).To(gomega.ContainSubstring(part))
	}
}

// Update changes an object, again and again on conflicts, until the change is accepted.
func Update[T client.Object](ctx context.Context, c client.Client, obj T, change func(T)) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(g gomega.Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(gomega.Succeed())
		change(obj)
		g.Expect(c.Update(ctx, obj)).To(gomega.Succeed())
	}).WithTimeout(Soon).WithPolling(Interval).Should(gomega.Succeed())
}

// conditionsOf reads status.conditions of any kind.
func conditionsOf(obj client.Object) ([]metav1.Condition, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name(obj), err)
	}
	status, _, _ := unstructured.NestedMap(content, "status")
	var holder struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &holder); err != nil {
		return nil, fmt.Errorf("reading the conditions of %s: %w", name(obj), err)
	}
	return holder.Conditions, nil
}

// name is an object's kind, or its Go type where the kind is not filled in, and its name.
func name(obj client.Object) string {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = fmt.Sprintf("%T", obj)
	}
	return kind + " " + client.ObjectKeyFromObject(obj).String()
}
