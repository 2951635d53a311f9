// Package roundtrip is exercise 26a: conversions between two versions that lose nothing.
package roundtrip

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/02-lolcow/exercises/internal/versions/v1alpha1"
	"example.com/workbook/02-lolcow/exercises/internal/versions/v1beta1"
	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader writes: to v1beta1, and to v1alpha1.
type Entry func() (
	func(*v1alpha1.Lolcow) (*v1beta1.Lolcow, error),
	func(*v1beta1.Lolcow) (*v1alpha1.Lolcow, error),
)

// annotation is the one that the v1alpha1 form may have.
const annotation = "my.domain/conversion-data"

// Check calls the functions with drawn Lolcows, and then an API server calls them.
func Check(t *check.T, work check.Work[Entry]) {
	toBeta, toAlpha := work.Entry()
	behaviour := func(name string, body func(c *conversions)) {
		t.Behaviour(name, func(b *check.B) { body(&conversions{b, toBeta, toAlpha}) })
	}
	behaviour("spec.port is the port named page, and unset where there is none", (*conversions).shown)
	behaviour("from v1alpha1 to v1beta1 and back, nothing is lost", (*conversions).fromAlpha)
	behaviour("from v1beta1 to v1alpha1 and back, nothing is lost", (*conversions).fromBeta)
	behaviour("what a client changes in v1alpha1 is what v1beta1 shows, and the other ports stay", (*conversions).changed)
	behaviour("an annotation that cannot be read is as none", (*conversions).unreadable)
	behaviour("an annotation that a user has edited changes nothing of what v1alpha1 shows", (*conversions).forged)
	behaviour("the annotation says nothing in v1beta1, where a user may have put it", (*conversions).misplaced)
	behaviour("the argument stays as it is", (*conversions).pure)
	checkServer(t, &converter{toBeta, toAlpha})
}

// conversions are the functions, and the behaviour that calls them.
type conversions struct {
	b       *check.B
	toBeta  func(*v1alpha1.Lolcow) (*v1beta1.Lolcow, error)
	toAlpha func(*v1beta1.Lolcow) (*v1alpha1.Lolcow, error)
}

func (c *conversions) beta(from *v1alpha1.Lolcow) *v1beta1.Lolcow {
	to, err := c.toBeta(from.DeepCopy())
	if err != nil || to == nil {
		c.b.Fatalf("%s\nhas no v1beta1 form: %v", text(from), err)
	}
	return to
}

func (c *conversions) alpha(from *v1beta1.Lolcow) *v1alpha1.Lolcow {
	to, err := c.toAlpha(from.DeepCopy())
	if err != nil || to == nil {
		c.b.Fatalf("%s\nhas no v1alpha1 form: %v", text(from), err)
	}
	return to
}

// same asserts that two Lolcows of a version are equal. The converter sets the apiVersion.
func same[L any](b *check.B, what string, want, got *L) {
	if w, g := text(want), text(got); w != g {
		b.Fatalf("%s:\n%s\nand it should be\n%s", what, g, w)
	}
}

func (c *conversions) shown() {
	for _, from := range drawBetas() {
		want := int32(0)
		if i := slices.IndexFunc(from.Spec.Ports, isPage); i >= 0 {
			want = from.Spec.Ports[i].Port
		}
		if got := c.alpha(from).Spec.Port; got != want {
			c.b.Fatalf("spec.port is %d, and should be %d, of\n%s", got, want, text(from))
		}
	}
	for _, from := range drawAlphas() {
		want := v1beta1.LolcowSpec{Greeting: from.Spec.Greeting}
		if from.Spec.Port != 0 {
			want.Ports = []v1beta1.LolcowPort{{Name: v1beta1.PagePort, Port: from.Spec.Port}}
		}
		same(c.b, "the spec of v1beta1 of\n"+text(from)+"\nis", &want, &c.beta(from).Spec)
	}
}

func (c *conversions) fromAlpha() {
	for _, from := range drawAlphas() {
		got := c.alpha(c.beta(from))
		got.APIVersion, got.Kind = "", ""
		// It may also say that there is nothing to keep.
		delete(got.Annotations, annotation)
		same(c.b, "a v1alpha1 Lolcow comes back as", from, got)
	}
}

func (c *conversions) fromBeta() {
	betas := drawBetas()
	// All of them first, as the API server does with a list: they have one name, so that nothing can be remembered by name.
	var alphas []*v1alpha1.Lolcow
	for _, from := range betas {
		alphas = append(alphas, c.alpha(from))
	}
	for i, from := range betas {
		got := c.beta(alphas[i])
		got.APIVersion, got.Kind = "", ""
		same(c.b, "a v1beta1 Lolcow comes back as", from, got)
	}
}

// changed edits the v1alpha1 form.
func (c *conversions) changed() {
	for _, port := range []int32{32000, 0} {
		for _, from := range drawBetas() {
			old := c.alpha(from)
			old.Spec.Greeting, old.Spec.Port = "Another greeting", port
			old.Labels = map[string]string{"edited": "yes"}
			old.Status.ObservedGeneration = 9
			got := c.beta(old)
			what := "a client changes the v1alpha1 form of\n" + text(from) + "\n"
			if got.Spec.Greeting != "Another greeting" || got.Labels["edited"] != "yes" || got.Status.ObservedGeneration != 9 {
				c.b.Fatalf("%sand the change of the greeting, of a label or of the status is lost:\n%s", what, text(got))
			}
			// The page is at its place where it had one. At which place a new one is, is not said.
			want := v1beta1.LolcowSpec{Greeting: got.Spec.Greeting, Ports: withPage(from.Spec.Ports, port)}
			if !slices.ContainsFunc(from.Spec.Ports, isPage) && port != 0 {
				got.Spec.Ports = slices.Concat(
					slices.DeleteFunc(slices.Clone(got.Spec.Ports), func(port v1beta1.LolcowPort) bool { return !isPage(port) }),
					slices.DeleteFunc(slices.Clone(got.Spec.Ports), isPage))
			}
			same(c.b, what+"to the port "+text(port)+", and the spec of v1beta1 is", &want, &got.Spec)
		}
	}
}

// withPage returns ports whose page has this number: at its place, or first. 0 is no page.
func withPage(ports []v1beta1.LolcowPort, number int32) []v1beta1.LolcowPort {
	ports = slices.Clone(ports)
	i := slices.IndexFunc(ports, isPage)
	switch {
	case i >= 0 && number == 0:
		return slices.Delete(ports, i, i+1)
	case i >= 0:
		ports[i].Port = number
		return ports
	case number == 0:
		return ports
	}
	return slices.Insert(ports, 0, v1beta1.LolcowPort{Name: v1beta1.PagePort, Port: number})
}

func isPage(port v1beta1.LolcowPort) bool { return port.Name == v1beta1.PagePort }

func (c *conversions) unreadable() {
	for _, value := range []string{"", "{", "moo", "5", `"`, `{"ports": 5`} {
		for _, from := range drawAlphas() {
			from.Annotations = nil
			want := c.beta(from)
			from.Annotations = map[string]string{annotation: value}
			same(c.b, fmt.Sprintf("the annotation is %q, and the Lolcow in v1beta1 is", value), want, c.beta(from))
		}
	}
}

var (
	numbers    = regexp.MustCompile(`-?[0-9]+`)
	lastNumber = regexp.MustCompile(`-?[0-9]+([^0-9]*)$`)
)

// forged edits the annotations that the reader's code has written, as a user can.
func (c *conversions) forged() {
	for _, from := range drawBetas() {
		old := c.alpha(from)
		value := old.Annotations[annotation]
		for _, edited := range []string{
			numbers.ReplaceAllString(value, "99"), numbers.ReplaceAllString(value, "-1"), strings.ReplaceAll(value, "api", v1beta1.PagePort),
		} {
			c.expectPage(old, edited)
		}
		// In a list it is the last port, when all others have been read.
		if edited := lastNumber.ReplaceAllString(value, `"moo"$1`); edited != value && json.Valid([]byte(edited)) {
			delete(old.Annotations, annotation)
			want := c.beta(old)
			setAnnotation(old, edited)
			same(c.b, fmt.Sprintf("the annotation is %q, which cannot be read, and the Lolcow in v1beta1 is", edited), want, c.beta(old))
		}
	}
}

// expectPage asserts that with an edited annotation, the page in v1beta1 is spec.port.
func (c *conversions) expectPage(old *v1alpha1.Lolcow, edited string) {
	setAnnotation(old, edited)
	var want, got []int32
	if old.Spec.Port != 0 {
		want = append(want, old.Spec.Port)
	}
	for _, port := range c.beta(old).Spec.Ports {
		if isPage(port) {
			got = append(got, port.Port)
		}
	}
	if !slices.Equal(want, got) {
		c.b.Fatalf("in v1beta1 the ports named page are %v, and should be %v, of\n%s", got, want, text(old))
	}
}

func setAnnotation(lolcow *v1alpha1.Lolcow, value string) {
	metav1.SetMetaDataAnnotation(&lolcow.ObjectMeta, annotation, value)
}

// misplaced gives a Lolcow of v1beta1 the annotations of the v1alpha1 form of another, as a user does who copies a manifest.
func (c *conversions) misplaced() {
	betas := drawBetas()
	for i, from := range betas {
		copied := from.DeepCopy()
		copied.Annotations = c.alpha(betas[len(betas)-1-i]).Annotations
		same(c.b, "with annotations that were copied from v1alpha1, a v1beta1 Lolcow comes back with the spec",
			&from.Spec, &c.beta(c.alpha(copied)).Spec)
	}
}

// pure asserts that the functions change nothing of what they get.
func (c *conversions) pure() {
	for _, beta := range drawBetas() {
		before := beta.DeepCopy()
		alpha, err := c.toAlpha(beta)
		if err != nil {
			c.b.Fatalf("%s\nhas no v1alpha1 form: %v", text(beta), err)
		}
		if !reflect.DeepEqual(beta, before) {
			c.b.Fatalf("the function to v1alpha1 has changed its argument to\n%s\nfrom\n%s", text(beta), text(before))
		}
		kept := alpha.DeepCopy()
		if _, err := c.toBeta(alpha); err != nil {
			c.b.Fatalf("%s\nhas no v1beta1 form: %v", text(alpha), err)
		}
		if !reflect.DeepEqual(alpha, kept) {
			c.b.Fatalf("the function to v1beta1 has changed its argument to\n%s\nfrom\n%s", text(alpha), text(kept))
		}
	}
}

// text is an object in one line.
func text(object any) string {
	content, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(content)
}
