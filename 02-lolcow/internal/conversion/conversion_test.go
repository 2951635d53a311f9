package conversion

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"pgregory.net/rapid"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/api/v1beta1"
)

// expectSame compares as Kubernetes does: an empty list or map is none.
func expectSame(t rapid.TB, got, want any) {
	t.Helper()
	if !apiequality.Semantic.DeepEqual(got, want) {
		t.Fatalf("want to get the same, but (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func TestRoundTripOfV1beta1(t *testing.T) {
	t.Parallel()
	checkRoundTrip(t, func(t *rapid.T) {
		hub := drawHub(t)
		expectSame(t, toHub(t, fromHub(t, hub)), hub)
	})
}

func TestRoundTripOfV1alpha1(t *testing.T) {
	t.Parallel()
	checkRoundTrip(t, func(t *rapid.T) {
		alpha := drawAlpha(t)
		expectSame(t, fromHub(t, toHub(t, alpha)), alpha)
	})
}

// With an annotation, whatever is in it, v1alpha1 shows the same after a round trip, and what the annotation adds is the same.
func TestRoundTripWithAnnotation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		alpha := drawAlpha(t)
		if alpha.Annotations == nil {
			alpha.Annotations = map[string]string{}
		}
		alpha.Annotations[Annotation] = drawAnnotation(t)
		hub := toHub(t, alpha)
		again := fromHub(t, hub)
		expectSame(t, toHub(t, again), hub)
		delete(alpha.Annotations, Annotation)
		delete(again.Annotations, Annotation)
		expectSame(t, again, alpha)
	})
}

// A client that writes v1alpha1 replaces the first greeting and the page.
func TestWritingV1alpha1ReplacesOnlyWhatItShows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hub := drawHub(t)
		alpha := fromHub(t, hub)
		alpha.Spec.Greeting = greetings.Draw(t, "new greeting")
		port := rapid.Int32Range(minNodePort, maxNodePort).Draw(t, "new port")
		alpha.Spec.Port = &port

		want := hub.DeepCopy()
		if len(want.Spec.Greetings) == 0 {
			want.Spec.Greetings = []string{""}
		}
		want.Spec.Greetings[0] = alpha.Spec.Greeting
		if len(want.Spec.Ports) == 0 {
			want.Spec.Ports = []v1beta1.LolcowPort{{Name: v1beta1.PagePort}}
		}
		for i := range want.Spec.Ports {
			if isPage(want.Spec.Ports[i]) {
				want.Spec.Ports[i].NodePort = &port
			}
		}
		expectSame(t, toHub(t, alpha), want)
	})
}

// full has something of everything that v1alpha1 does not show.
func full() *v1beta1.Lolcow {
	return &v1beta1.Lolcow{
		Spec: v1beta1.LolcowSpec{
			Greetings: []string{"Moo", "Baa", "Oink"},
			Ports:     []v1beta1.LolcowPort{{Name: "side", NodePort: new(int32(30001))}, {Name: v1beta1.PagePort, NodePort: new(int32(30002))}},
			Replicas:  new(int32(2)), Image: "lolcow:1",
		},
		Status: v1beta1.LolcowStatus{
			ObservedGeneration: 3,
			Greetings:          []string{"Moo", "Baa"},
			Ports:              []v1beta1.LolcowPortStatus{{Name: "side", NodePort: 30001}, {Name: v1beta1.PagePort, NodePort: 30002}},
		},
	}
}

func TestV1alpha1ShowsTheFirstGreetingAndThePage(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	alpha := fromHub(t, full())
	g.Expect(alpha.Spec).To(Equal(v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(30002)), Replicas: new(int32(2)), Image: "lolcow:1"}))
	g.Expect(alpha.Status).To(Equal(v1alpha1.LolcowStatus{ObservedGeneration: 3, Greeting: "Moo", Port: 30002}))
	g.Expect(alpha.Annotations).To(Equal(map[string]string{Annotation: `{"greetings":["Baa","Oink"],"ports":[{"name":"side","nodePort":30001},{"name":"page"}],` +
		`"status":{"greetings":["Baa"],"ports":[{"name":"side","nodePort":30001},{"name":"page","nodePort":1}]}}`}))
}

// What v1alpha1 shows whole needs no annotation.
func TestV1alpha1NeedsNoAnnotationForWhatItShows(t *testing.T) {
	t.Parallel()
	hub := full()
	hub.Spec.Greetings, hub.Status.Greetings = hub.Spec.Greetings[:1], hub.Status.Greetings[:1]
	hub.Spec.Ports, hub.Status.Ports = hub.Spec.Ports[1:], hub.Status.Ports[1:]
	NewWithT(t).Expect(fromHub(t, hub).Annotations).To(BeEmpty())
}

func TestEmptyGreetingClearsAll(t *testing.T) {
	t.Parallel()
	alpha := fromHub(t, full())
	alpha.Spec.Greeting = ""
	want := full()
	want.Spec.Greetings = nil
	expectSame(t, toHub(t, alpha), want)
}

func TestV1alpha1RemovesThePortOfTheSpec(t *testing.T) {
	t.Parallel()
	alpha := fromHub(t, full())
	alpha.Spec.Port = nil
	want := full()
	want.Spec.Ports[1].NodePort = nil
	expectSame(t, toHub(t, alpha), want)
}

func TestWithoutTheAnnotationTheRestIsLost(t *testing.T) {
	t.Parallel()
	alpha := fromHub(t, full())
	alpha.Annotations = nil
	want := full()
	want.Spec.Greetings, want.Status.Greetings = want.Spec.Greetings[:1], want.Status.Greetings[:1]
	want.Spec.Ports, want.Status.Ports = want.Spec.Ports[1:], want.Status.Ports[1:]
	expectSame(t, toHub(t, alpha), want)
}

// The operator of the release that stores v1alpha1 may write the status of v1alpha1: the rest of the status stays.
func TestStatusOfV1alpha1(t *testing.T) {
	t.Parallel()
	four := []v1beta1.LolcowPortStatus{{Name: "a", NodePort: 1}, {Name: "b", NodePort: 2}, {Name: "c", NodePort: 3}, {Name: "d", NodePort: 4}}
	page := v1beta1.LolcowPortStatus{Name: v1beta1.PagePort, NodePort: 30005}
	side := v1beta1.LolcowPortStatus{Name: "side", NodePort: 30001}
	for name, test := range map[string]struct {
		before   []v1beta1.LolcowPortStatus
		greeting string
		port     int32
		want     v1beta1.LolcowStatus
	}{
		"a new greeting and port":              {[]v1beta1.LolcowPortStatus{side, {Name: v1beta1.PagePort, NodePort: 30002}}, "Mee", 30005, v1beta1.LolcowStatus{Greetings: []string{"Mee", "Baa"}, Ports: []v1beta1.LolcowPortStatus{side, page}}},
		"no greeting, no port":                 {[]v1beta1.LolcowPortStatus{side, page}, "", 0, v1beta1.LolcowStatus{Ports: []v1beta1.LolcowPortStatus{side}}},
		"a port where there was none":          {nil, "Moo", 30005, v1beta1.LolcowStatus{Greetings: []string{"Moo", "Baa"}, Ports: []v1beta1.LolcowPortStatus{page}}},
		"a port where others were":             {[]v1beta1.LolcowPortStatus{side}, "Moo", 30005, v1beta1.LolcowStatus{Greetings: []string{"Moo", "Baa"}, Ports: []v1beta1.LolcowPortStatus{page, side}}},
		"a port for which others have no room": {four, "Moo", 30005, v1beta1.LolcowStatus{Greetings: []string{"Moo", "Baa"}, Ports: []v1beta1.LolcowPortStatus{page, four[0], four[1], four[2]}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := full()
			hub.Status.Ports = test.before
			alpha := fromHub(t, hub)
			alpha.Status.Greeting, alpha.Status.Port = test.greeting, test.port
			test.want.ObservedGeneration = hub.Status.ObservedGeneration
			want := full()
			want.Status = test.want
			expectSame(t, toHub(t, alpha), want)
		})
	}
}

func TestTheHubHasNoAnnotation(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	// A client of v1beta1 may write it: it counts for nothing.
	hub := full()
	hub.Spec, hub.Status = v1beta1.LolcowSpec{}, v1beta1.LolcowStatus{}
	hub.Annotations = map[string]string{Annotation: fromHub(t, full()).Annotations[Annotation], "a": "b"}
	alpha := fromHub(t, hub)
	g.Expect(alpha.Annotations).To(Equal(map[string]string{"a": "b"}))
	for _, text := range []string{hub.Annotations[Annotation], "", "rubbish"} {
		alpha.Annotations[Annotation] = text
		g.Expect(toHub(t, alpha).Annotations).To(Equal(map[string]string{"a": "b"}))
	}
}

func TestMalformedAnnotationIsIgnored(t *testing.T) {
	t.Parallel()

	eight := `"a"` + strings.Repeat(`,"a"`, 7)
	for name, text := range map[string]string{
		"nothing":                          "",
		"no JSON":                          "greetings: [Baa]",
		"another type":                     `["Baa"]`,
		"a field of another type":          `{"greetings":"Baa"}`,
		"a number that is too large":       `{"ports":[{"name":"page"},{"name":"a","nodePort":99999999999}]}`,
		"too many greetings with ours":     `{"greetings":[` + eight + `]}`,
		"an empty greeting":                `{"greetings":["Baa",""]}`,
		"a greeting that is too long":      `{"greetings":["Baa","` + strings.Repeat("x", maxGreeting+1) + `"]}`,
		"a greeting with NUL":              `{"greetings":["Baa\u0000"]}`,
		"no page":                          `{"greetings":["Baa"],"ports":[{"name":"a"}]}`,
		"a name twice":                     `{"ports":[{"name":"page"},{"name":"a"},{"name":"a"}]}`,
		"the name of the Service's port":   `{"ports":[{"name":"page"},{"name":"http"}]}`,
		"no name":                          `{"ports":[{"name":"page"},{}]}`,
		"a name that is too long":          `{"ports":[{"name":"page"},{"name":"` + strings.Repeat("x", maxPortName+1) + `"}]}`,
		"a name with a line break":         `{"ports":[{"name":"page"},{"name":"a\n"}]}`,
		"too many ports":                   `{"ports":[{"name":"page"},{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`,
		"a port that is no node port":      `{"ports":[{"name":"page"},{"name":"a","nodePort":80}]}`,
		"too many greetings in the status": `{"greetings":["Baa"],"status":{"greetings":[` + eight + `]}}`,
		"a port without a number":          `{"greetings":["Baa"],"status":{"ports":[{"name":"a"}]}}`,
		"a port that is too large":         `{"greetings":["Baa"],"status":{"ports":[{"name":"a","nodePort":65536}]}}`,
		"a name twice in the status":       `{"status":{"ports":[{"name":"a","nodePort":1},{"name":"a","nodePort":2}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alpha := fromHub(t, full())
			delete(alpha.Annotations, Annotation)
			want := toHub(t, alpha)
			alpha.Annotations = map[string]string{Annotation: text}
			expectSame(t, toHub(t, alpha), want)
		})
	}
}

// The API server checks the total of all annotations. One byte more than it accepts, and ours is left out.
func TestAnnotationsThatWouldBeTooLarge(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ours := len(Annotation) + len(fromHub(t, full()).Annotations[Annotation])
	room := validation.TotalAnnotationSizeLimitB - ours - len("a")

	hub := full()
	hub.Annotations = map[string]string{"a": strings.Repeat("x", room)}
	alpha := fromHub(t, hub)
	g.Expect(alpha.Annotations).To(HaveKey(Annotation))
	g.Expect(validation.ValidateAnnotationsSize(alpha.Annotations)).To(Succeed())

	hub.Annotations["a"] += "x"
	alpha = fromHub(t, hub)
	g.Expect(alpha.Annotations).To(HaveLen(1))
	g.Expect(alpha.Spec.Greeting).To(Equal("Moo"), "the object is converted all the same")
}
