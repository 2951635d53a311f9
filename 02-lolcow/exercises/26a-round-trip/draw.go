package roundtrip

import (
	"cmp"
	"math/rand/v2"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/02-lolcow/exercises/internal/versions/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/versions/v1beta1"
)

// drawn is how many Lolcows are drawn of each version: the same at each call.
const drawn = 200

// drawAlphas returns Lolcows of v1alpha1. The shortest is the first, so that what the reader sees is easy to read.
func drawAlphas() []*v1alpha1.Lolcow {
	r := rand.New(rand.NewPCG(26, 1))
	var lolcows []*v1alpha1.Lolcow
	for range drawn {
		lolcow := &v1alpha1.Lolcow{ObjectMeta: drawMeta(r)}
		lolcow.Spec.Greeting = drawGreeting(r)
		if r.IntN(3) > 0 {
			lolcow.Spec.Port = drawPort(r)
		}
		lolcow.Status.ObservedGeneration = r.Int64N(3)
		lolcows = append(lolcows, lolcow)
	}
	slices.SortStableFunc(lolcows, shorter)
	return lolcows
}

// drawBetas returns Lolcows of v1beta1, the shortest first.
func drawBetas() []*v1beta1.Lolcow {
	r := rand.New(rand.NewPCG(26, 2))
	var lolcows []*v1beta1.Lolcow
	for range drawn {
		lolcow := &v1beta1.Lolcow{ObjectMeta: drawMeta(r)}
		lolcow.Spec.Greeting = drawGreeting(r)
		// The schema allows all of them.
		names := []string{v1beta1.PagePort, "api", "a,b=1;c:d", "{\"\\"}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names[:r.IntN(len(names)+1)] {
			lolcow.Spec.Ports = append(lolcow.Spec.Ports, v1beta1.LolcowPort{Name: name, Port: drawPort(r)})
		}
		lolcow.Status.ObservedGeneration = r.Int64N(3)
		lolcows = append(lolcows, lolcow)
	}
	slices.SortStableFunc(lolcows, shorter)
	return lolcows
}

func shorter[L any](a, b L) int { return cmp.Compare(len(text(a)), len(text(b))) }

func drawPort(r *rand.Rand) int32 { return 30000 + r.Int32N(2000) }

func drawGreeting(r *rand.Rand) string {
	return []string{"", "Moo", "Muh 🐄", `{"ports": []}`, "Moo\nBaa"}[r.IntN(5)]
}

// drawMeta leaves out about half of what metadata may have.
func drawMeta(r *rand.Rand) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: "cow", Namespace: "meadow"}
	some := func() bool { return r.IntN(2) == 0 }
	if some() {
		meta.UID, meta.ResourceVersion, meta.Generation = types.UID("4f2c"), "7", 1+r.Int64N(3)
	}
	if some() {
		meta.Labels = map[string]string{"herd": "brown"}
	}
	if some() {
		meta.Annotations = map[string]string{"example.com/note": "of a user"}
	}
	if some() {
		meta.Finalizers = []string{"example.com/milk"}
	}
	if some() {
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "herd", UID: "9a1b"}}
	}
	return meta
}
