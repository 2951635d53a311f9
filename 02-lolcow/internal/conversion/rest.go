package conversion

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validation"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/api/v1beta1"
)

// Annotation has, as JSON, what v1alpha1 has no field for. Only the v1alpha1 form of an object has it.
const Annotation = "my.domain/conversion-data"

// rest is what v1alpha1 does not show.
type rest struct {
	// Greetings are those of the spec after the first.
	Greetings []string `json:"greetings,omitempty"`
	// Ports are those of the spec. The entry of the page has no value: it only marks the place.
	Ports  []v1beta1.LolcowPort `json:"ports,omitempty"`
	Status restOfStatus         `json:"status,omitzero"`
}

type restOfStatus struct {
	// Greetings are those of the status after the first.
	Greetings []string `json:"greetings,omitempty"`
	// Ports are those of the status. The entry of the page only marks the place.
	Ports []v1beta1.LolcowPortStatus `json:"ports,omitempty"`
}

// restOf returns what v1alpha1 does not show of a Lolcow. It changes the Lolcow.
func restOf(from *v1beta1.Lolcow) rest {
	var r rest
	if len(from.Spec.Greetings) > 1 {
		r.Greetings = from.Spec.Greetings[1:]
	}
	if len(from.Status.Greetings) > 1 {
		r.Status.Greetings = from.Status.Greetings[1:]
	}
	// A port alone, if v1alpha1 shows it, comes back without a mark.
	if ports := from.Spec.Ports; len(ports) > 1 || len(ports) == 1 && pageOf(ports).NodePort == nil {
		if i := slices.IndexFunc(ports, isPage); i >= 0 {
			ports[i].NodePort = nil
		}
		r.Ports = ports
	}
	if ports := from.Status.Ports; len(ports) > 1 || len(ports) == 1 && !isPageStatus(ports[0]) {
		if i := slices.IndexFunc(ports, isPageStatus); i >= 0 {
			ports[i].NodePort = minStatusPort
		}
		r.Status.Ports = ports
	}
	return r
}

// putRest writes the annotation, if there is anything to be in it. If all annotations of the object would be larger than
// the API server accepts, the object goes without: the API server would fail the whole request, and with a list all
// other objects of the list.
func putRest(to *v1alpha1.Lolcow, r rest) {
	delete(to.Annotations, Annotation)
	if reflect.ValueOf(r).IsZero() {
		return
	}
	text, _ := json.Marshal(r) // strings and numbers always have a JSON form
	if to.Annotations == nil {
		to.Annotations = map[string]string{}
	}
	to.Annotations[Annotation] = string(text)
	if validation.ValidateAnnotationsSize(to.Annotations) != nil {
		delete(to.Annotations, Annotation)
	}
}

// takeRest removes the annotation, and returns what it says. If FromHub cannot have written it, another client has: all of it is
// ignored.
func takeRest(from *v1alpha1.Lolcow) rest {
	text, found := from.Annotations[Annotation]
	delete(from.Annotations, Annotation)
	var r rest
	if !found || json.Unmarshal([]byte(text), &r) != nil || !r.valid() {
		return rest{}
	}
	return r
}

// The bounds of the schema of v1beta1.
const (
	maxGreetings  = 8
	maxGreeting   = 1024
	maxPorts      = 4
	maxPortName   = 63
	minNodePort   = 30000
	maxNodePort   = 32767
	minStatusPort = 1
	maxStatusPort = 65535
	// servicePagePort is what the Service names the port page, so no other port may have this name.
	servicePagePort = "http"
)

var portName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// valid reports whether a v1beta1 object with this would be accepted.
func (r rest) valid() bool {
	names := portNames(r.Ports, func(port v1beta1.LolcowPort) string { return port.Name })
	statusNames := portNames(r.Status.Ports, func(port v1beta1.LolcowPortStatus) string { return port.Name })
	return validGreetings(r.Greetings) && validGreetings(r.Status.Greetings) &&
		validNames(names) && validNames(statusNames) &&
		(len(names) == 0 || slices.Contains(names, v1beta1.PagePort)) && !slices.Contains(names, servicePagePort) &&
		!slices.ContainsFunc(r.Greetings, func(greeting string) bool { return strings.Contains(greeting, "\x00") }) &&
		!slices.ContainsFunc(r.Ports, func(port v1beta1.LolcowPort) bool {
			return port.NodePort != nil && (*port.NodePort < minNodePort || *port.NodePort > maxNodePort)
		}) &&
		!slices.ContainsFunc(r.Status.Ports, func(port v1beta1.LolcowPortStatus) bool {
			return port.NodePort < minStatusPort || port.NodePort > maxStatusPort
		})
}

// validGreetings checks greetings that another one precedes.
func validGreetings(greetings []string) bool {
	return len(greetings) < maxGreetings && !slices.ContainsFunc(greetings, func(greeting string) bool {
		return greeting == "" || utf8.RuneCountInString(greeting) > maxGreeting
	})
}

func portNames[P any](ports []P, name func(P) string) []string {
	var names []string
	for _, port := range ports {
		names = append(names, name(port))
	}
	return names
}

func validNames(names []string) bool {
	unique := slices.Clone(names)
	slices.Sort(unique)
	return len(names) <= maxPorts && len(slices.Compact(unique)) == len(names) &&
		!slices.ContainsFunc(names, func(name string) bool {
			return len(name) > maxPortName || !portName.MatchString(name)
		})
}
