package operator

import (
	"context"
	"encoding/base64"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

func lease(name string, holder *string) runtime.Object {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teapot-system", Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: holder},
	}
}

func TestWaitLeader(t *testing.T) {
	released, other, ours := "", "other_1", "teapot_2"
	clients := fake.NewClientset(lease("a", &other), lease("b", nil), lease("c", &released), lease("d", &ours))
	asked := 0
	got, err := waitLeader(t.Context(), clients, "teapot-system", func(_ context.Context, lease *coordinationv1.Lease) (bool, error) {
		asked++
		// As of one that was killed: the second look finds another.
		return *lease.Spec.HolderIdentity == ours && asked > 2, nil
	})
	if err != nil || got != ours {
		t.Errorf("got %q, %v, want %q", got, err, ours)
	}
	if asked != 4 {
		t.Errorf("%d leases were asked about, want the 2 that are held, twice", asked)
	}
}

func TestCredentialOf(t *testing.T) {
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	if got, err := credentialOf(token(`{"jti":"0-1","sub":"x"}`)); err != nil || got != "JTI=0-1" {
		t.Errorf("got %q, %v, want JTI=0-1", got, err)
	}
	for what, bad := range map[string]string{
		"one that is no JWT":        "abc",
		"one that is not base64":    "a.!.c",
		"one without an id":         token(`{}`),
		"one whose claims are none": token(`[`),
	} {
		if got, err := credentialOf(bad); err == nil {
			t.Errorf("%s: got %q, want an error", what, got)
		}
	}
}
