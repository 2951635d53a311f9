package conversion

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/api/v1beta1"
)

// TestMain sets how often each property is checked, unless -rapid.checks does. With -short it is a fifth.
func TestMain(m *testing.M) {
	flag.Parse()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set("10000")
	}
	os.Exit(m.Run())
}

// checkRoundTrip checks a property ten times as often.
func checkRoundTrip(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	for range 10 {
		rapid.Check(t, property)
	}
}

var (
	greetings = rapid.OneOf(
		rapid.Map(rapid.StringN(1, 3, -1), func(greeting string) string { return strings.ReplaceAll(greeting, "\x00", "0") }),
		rapid.SampledFrom([]string{"Moo", "Baa", "Oink", " ", "\n", `"`, `\`, "<&>", "{}", "null", "$(HOME)", "\u2028", "\x01", "🐄", strings.Repeat("🐄", maxGreeting)}),
	)
	portNameList  = []string{v1beta1.PagePort, "a", "b-1", "0", strings.Repeat("x", maxPortName)}
	nodePorts     = rapid.Ptr(rapid.Int32Range(minNodePort, maxNodePort), true)
	otherKeys     = rapid.SampledFrom([]string{"a", "my.domain/conversion", "kubectl.kubernetes.io/last-applied-configuration"})
	otherMetadata = rapid.MapOfN(otherKeys, rapid.StringN(0, 5, -1), 0, 2)
)

func drawMeta(t *rapid.T) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "cow", Namespace: "meadow", UID: "1", Generation: rapid.Int64Range(1, 9).Draw(t, "generation"),
		Labels: otherMetadata.Draw(t, "labels"), Annotations: otherMetadata.Draw(t, "annotations"),
	}
}

func drawConditions(t *rapid.T) []metav1.Condition {
	return rapid.SliceOfN(rapid.Just(metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonServing,
		LastTransitionTime: metav1.NewTime(time.Unix(1, 0)),
	}), 0, 1).Draw(t, "conditions")
}

// drawHub draws a Lolcow that the schema of v1beta1 accepts.
func drawHub(t *rapid.T) *v1beta1.Lolcow {
	hub := &v1beta1.Lolcow{ObjectMeta: drawMeta(t)}
	hub.Spec = v1beta1.LolcowSpec{
		Greetings: rapid.SliceOfN(greetings, 0, maxGreetings).Draw(t, "greetings"),
		Replicas:  rapid.Ptr(rapid.Int32Range(0, 10), true).Draw(t, "replicas"),
		Image:     rapid.SampledFrom([]string{"", "lolcow:1"}).Draw(t, "image"),
	}
	if rapid.Bool().Draw(t, "has ports") {
		names := rapid.Permutation(portNameList).Filter(hasPage).Draw(t, "names")
		for _, name := range names[:rapid.IntRange(indexOfPage(names)+1, maxPorts).Draw(t, "ports")] {
			hub.Spec.Ports = append(hub.Spec.Ports, v1beta1.LolcowPort{Name: name, NodePort: nodePorts.Draw(t, "nodePort")})
		}
	}
	hub.Status = v1beta1.LolcowStatus{
		ObservedGeneration: rapid.Int64Range(0, 9).Draw(t, "observedGeneration"),
		Greetings:          rapid.SliceOfN(greetings, 0, maxGreetings).Draw(t, "status.greetings"),
		Conditions:         drawConditions(t),
	}
	names := rapid.Permutation(portNameList).Draw(t, "status names")
	for _, name := range names[:rapid.IntRange(0, maxPorts).Draw(t, "status.ports")] {
		hub.Status.Ports = append(hub.Status.Ports, v1beta1.LolcowPortStatus{
			Name: name, NodePort: rapid.Int32Range(minStatusPort, maxStatusPort).Draw(t, "status.nodePort"),
		})
	}
	return hub
}

// hasPage reports whether the first names, as many as a Lolcow can have, have the one that it must have.
func hasPage(names []string) bool { return indexOfPage(names) < maxPorts }

func indexOfPage(names []string) int {
	for i, name := range names {
		if name == v1beta1.PagePort {
			return i
		}
	}
	return len(names)
}

// drawAlpha draws a Lolcow that the schema of v1alpha1 accepts, without our annotation.
func drawAlpha(t *rapid.T) *v1alpha1.Lolcow {
	return &v1alpha1.Lolcow{
		ObjectMeta: drawMeta(t),
		Spec: v1alpha1.LolcowSpec{
			Greeting: rapid.OneOf(rapid.Just(""), greetings).Draw(t, "greeting"),
			Port:     nodePorts.Draw(t, "port"),
			Replicas: rapid.Ptr(rapid.Int32Range(0, 10), true).Draw(t, "replicas"),
			Image:    rapid.SampledFrom([]string{"", "lolcow:1"}).Draw(t, "image"),
		},
		Status: v1alpha1.LolcowStatus{
			ObservedGeneration: rapid.Int64Range(0, 9).Draw(t, "observedGeneration"),
			Greeting:           rapid.OneOf(rapid.Just(""), greetings).Draw(t, "status.greeting"),
			Port:               rapid.Int32Range(0, maxStatusPort).Draw(t, "status.port"),
			Conditions:         drawConditions(t),
		},
	}
}

// drawAnnotation draws what the annotation of an object may be: of no object, of another object, or nearly that of one.
func drawAnnotation(t *rapid.T) string {
	text := fromHub(t, drawHub(t)).Annotations[Annotation]
	switch rapid.IntRange(0, 2).Draw(t, "kind of annotation") {
	case 0:
		return text
	case 1:
		return rapid.String().Draw(t, "text")
	}
	before := rapid.SampledFrom([]string{`"page"`, `"a"`, `3`, `[`, `"nodePort"`, `"Moo"`, `{`}).Draw(t, "before")
	after := rapid.SampledFrom([]string{`"b-1"`, `"http"`, `"A"`, `9`, `-1`, `""`, `"\u0000"`, `null`, `["","","","","","","","",`}).Draw(t, "after")
	return strings.Replace(text, before, after, rapid.IntRange(1, 3).Draw(t, "times"))
}

// toHub converts, and sends both forms as JSON, as the API server and the webhook do.
func toHub(t rapid.TB, alpha *v1alpha1.Lolcow) *v1beta1.Lolcow {
	var hub v1beta1.Lolcow
	ToHub(sent(t, alpha), &hub)
	return sent(t, &hub)
}

// fromHub is toHub in the other direction.
func fromHub(t rapid.TB, hub *v1beta1.Lolcow) *v1alpha1.Lolcow {
	var alpha v1alpha1.Lolcow
	FromHub(sent(t, hub), &alpha)
	return sent(t, &alpha)
}

func sent[O any](t rapid.TB, object *O) *O {
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var received O
	if err := json.Unmarshal(text, &received); err != nil {
		t.Fatal(err)
	}
	return &received
}
