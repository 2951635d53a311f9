package controller

import (
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/workbook/04-goop/api/v1alpha1"
)

func TestTransitionsAreLoggedAndAnnounced(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var lines []string
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	recorder := events.NewFakeRecorder(2)
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "ApplyFailed", Message: "rejected"}
	announce(ctx, recorder, &v1alpha1.Goop{}, []transition{{corev1.EventTypeWarning, condition}, {"", condition}})
	logged := `"level"=0 "msg"="Condition changed" "type"="Ready" "status"="False" "reason"="ApplyFailed" "message"="rejected"`
	g.Expect(lines).To(Equal([]string{logged, logged}))
	g.Expect(recorder.Events).To(HaveLen(1), "not each transition is an Event")
	g.Expect(recorder.Events).To(Receive(Equal("Warning ApplyFailed rejected")))
}
