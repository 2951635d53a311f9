package main

import (
	"testing"

	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestProgram(t *testing.T) {
	t.Parallel()
	testserver.ExpectOutput(t, program)
}

// client-go's scheme has no conversions between the versions of a kind: the API server converts.
func TestClientsDoNotConvertBetweenVersions(t *testing.T) {
	t.Parallel()
	_, err := builtInScheme().ConvertToVersion(&autoscalingv1.HorizontalPodAutoscaler{}, autoscalingv2.SchemeGroupVersion)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("unknown conversion")))
}

// AddToGroupVersion registers Status. Without it a client cannot decode the server's error.
func TestSchemeWithoutTheCommonTypesLosesTheServersError(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	bare := runtime.NewScheme()
	bare.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Pod{}, &corev1.PodList{})
	for want, scheme := range map[string]*runtime.Scheme{
		`pods "a" not found`: minimalScheme(),
		"the server could not find the requested resource (get pods a)": bare,
	} {
		client := clientFor(testserver.Config(t), scheme)
		err := client.Get().Namespace(testserver.Namespace(t)).Resource("pods").Name("a").Do(t.Context()).Error()
		g.Expect(err).To(MatchError(want))
	}
}
