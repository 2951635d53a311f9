// Package lyingtest is exercise 23a: a test that fails where the code is wrong, and the code.
package lyingtest

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/02-lolcow/exercises/internal/tests"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader repairs. The test is in the same folder.
type Entry = lab.Constructor

// Check runs the reader's test with each reconciler, and then tests the reader's reconciler.
func Check(t *check.T, work check.Work[Entry]) {
	var binary *tests.Binary
	ok := t.Behaviour("the test compiles", func(b *check.B) { binary = tests.Build(b, work.Dir) })
	if !ok {
		return
	}
	defer binary.Remove()
	with := func(b *check.B, reconciler string) tests.Verdict {
		return binary.Run(b, lab.Variable+"="+reconciler)
	}
	t.Behaviour("the test passes with reconcilers that are right", func(b *check.B) {
		with(b, lab.Updates).ExpectPass("a reconciler that updates the status subresource keeps all promises")
		with(b, lab.Patches).ExpectPass("a reconciler that patches the status, with another reason and a message, keeps all promises")
	})
	t.Behaviour("the test fails with a reconciler whose status the API server ignores", func(b *check.B) {
		with(b, lab.WholeObject).ExpectFailure("the reconciler updates the whole object: its status is never stored")
	})
	t.Behaviour("the test fails with a reconciler whose status the API server rejects", func(b *check.B) {
		with(b, lab.NoReason).ExpectFailure("the reconciler writes a condition without a reason: its status is never stored")
	})
	t.Behaviour("the test fails with a reconciler that writes no observedGeneration, or an old one", func(b *check.B) {
		with(b, lab.NoGeneration).ExpectFailure("the reconciler leaves observedGeneration at 0")
		with(b, lab.OldGeneration).ExpectFailure("the spec was changed, and the reconciler leaves observedGeneration at the generation before")
	})
	t.Behaviour("the test fails with a reconciler that writes no greeting, or that Ready is False", func(b *check.B) {
		with(b, lab.NoGreeting).ExpectFailure("the reconciler leaves the greeting empty")
		with(b, lab.NotReady).ExpectFailure("the reconciler writes that Ready is False")
	})
	t.Behaviour("the test fails with a reconciler that writes the status once", func(b *check.B) {
		with(b, lab.Once).ExpectFailure("the spec was changed, and the status is about the spec before")
	})
	t.Behaviour("the test passes with your reconciler", func(b *check.B) {
		with(b, "").ExpectPass("this is your own reconciler")
	})
	t.Behaviour("your reconciler keeps its promises", func(b *check.B) {
		keepsPromises(b, work.Entry)
	})
	t.Behaviour("your reconciler is called again if it could not write the status", func(b *check.B) {
		wire := kube.NewWire(b)
		c, key := begin(b, wire.Config())
		expect := func() {
			if result, err := work.Entry(c).Reconcile(b.Context(), reconcile.Request{NamespacedName: key}); err == nil && result.IsZero() {
				b.Fatalf("the status could not be written, and Reconcile returned no error: nothing calls it again")
			}
		}
		wire.Fail(1, kube.Writes)
		expect()
		wire.Before(conflict)
		expect()
	})
}

// begin creates a Lolcow, and returns a client of the reconciler's.
func begin(b *check.B, config *rest.Config) (client.Client, client.ObjectKey) {
	c, err := client.New(config, client.Options{Scheme: lab.Scheme()})
	if err != nil {
		b.Fatalf("making a client: %v", err)
	}
	lolcow := &v1alpha1.Lolcow{
		ObjectMeta: metav1.ObjectMeta{Name: "cow", Namespace: kube.Namespace(b)}, Spec: v1alpha1.LolcowSpec{Greeting: "Moo"},
	}
	if err := c.Create(b.Context(), lolcow); err != nil {
		b.Fatalf("creating a Lolcow: %v", err)
	}
	return c, client.ObjectKeyFromObject(lolcow)
}

// conflict is what a write comes to if another client has changed the Lolcow since it was read.
func conflict(request kube.Request, r *http.Request) (*http.Response, error) {
	if !kube.Writes(request) {
		return nil, nil
	}
	lolcows := v1alpha1.SchemeGroupVersion.WithResource("lolcows").GroupResource()
	return kube.Failure(r, apierrors.NewConflict(lolcows, request.Name, errors.New("the object has been modified"))), nil
}

// keepsPromises reconciles a Lolcow on the API server, before and after changes of the spec.
func keepsPromises(b *check.B, entry Entry) {
	c, key := begin(b, kube.ReaderConfig(b))
	lolcow := &v1alpha1.Lolcow{}
	expect := func() {
		if _, err := entry(c).Reconcile(b.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			b.Fatalf("Reconcile returned an error: %v", err)
		}
		if err := c.Get(b.Context(), key, lolcow); err != nil {
			b.Fatalf("reading the Lolcow: %v", err)
		}
		status := lolcow.Status
		b.Event("the spec has the greeting %q and generation %d; the status has %q and %d",
			lolcow.Spec.Greeting, lolcow.Generation, status.Greeting, status.ObservedGeneration)
		switch {
		case status.Greeting != lolcow.Spec.Greeting:
			b.Fatalf("the greeting of the spec is %q, and that of the status %q", lolcow.Spec.Greeting, status.Greeting)
		case status.ObservedGeneration != lolcow.Generation:
			b.Fatalf("the Lolcow has generation %d, and observedGeneration is %d", lolcow.Generation, status.ObservedGeneration)
		case !apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady):
			b.Fatalf("the condition Ready is not True")
		}
	}
	expect()
	for _, change := range []func(spec *v1alpha1.LolcowSpec){
		func(spec *v1alpha1.LolcowSpec) { spec.Greeting = "Baa" },
		func(spec *v1alpha1.LolcowSpec) { spec.Replicas = new(int32(2)) },
	} {
		change(&lolcow.Spec)
		if err := c.Update(b.Context(), lolcow); err != nil {
			b.Fatalf("changing the Lolcow: %v", err)
		}
		expect()
	}
}
