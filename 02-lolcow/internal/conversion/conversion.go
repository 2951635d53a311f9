// Package conversion converts Lolcows between the versions of the API. v1beta1, the hub, has all fields; v1alpha1 shows the
// first greeting and the port named page. What else an object has is in one annotation of its v1alpha1 form, and comes back
// from there. So a client that writes v1alpha1 replaces what v1alpha1 shows, and nothing else, unless it drops the
// annotation: then the rest is lost.
//
// No object that the schema accepts fails to be converted: one that did would fail every list that it is in.
package conversion

import (
	"slices"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/api/v1beta1"
)

// ToHub converts a Lolcow to v1beta1. The annotation stays behind.
func ToHub(from *v1alpha1.Lolcow, to *v1beta1.Lolcow) {
	from = from.DeepCopy()
	kept := takeRest(from)
	to.ObjectMeta = from.ObjectMeta
	to.Spec = v1beta1.LolcowSpec{
		Greetings: withFirst(from.Spec.Greeting, kept.Greetings),
		Ports:     withPage(from.Spec.Port, kept.Ports),
		Replicas:  from.Spec.Replicas,
		Image:     from.Spec.Image,
	}
	to.Status = v1beta1.LolcowStatus{
		ObservedGeneration: from.Status.ObservedGeneration,
		Greetings:          withFirst(from.Status.Greeting, kept.Status.Greetings),
		Ports:              withPageStatus(from.Status.Port, kept.Status.Ports),
		Conditions:         from.Status.Conditions,
	}
}

// FromHub converts a Lolcow to v1alpha1. What v1alpha1 has no field for goes to the annotation.
func FromHub(from *v1beta1.Lolcow, to *v1alpha1.Lolcow) {
	from = from.DeepCopy()
	to.ObjectMeta = from.ObjectMeta
	to.Spec = v1alpha1.LolcowSpec{
		Greeting: first(from.Spec.Greetings),
		Port:     pageOf(from.Spec.Ports).NodePort,
		Replicas: from.Spec.Replicas,
		Image:    from.Spec.Image,
	}
	to.Status = v1alpha1.LolcowStatus{
		ObservedGeneration: from.Status.ObservedGeneration,
		Greeting:           first(from.Status.Greetings),
		Port:               pageStatusOf(from.Status.Ports).NodePort,
		Conditions:         from.Status.Conditions,
	}
	putRest(to, restOf(from))
}

// withFirst adds the greeting of v1alpha1 to those that it does not show. Without a greeting there are none: in v1alpha1
// that is how a client asks for fortunes.
func withFirst(greeting string, others []string) []string {
	if greeting == "" {
		return nil
	}
	return append([]string{greeting}, others...)
}

func first(greetings []string) string {
	if len(greetings) == 0 {
		return ""
	}
	return greetings[0]
}

// withPage puts the port of v1alpha1 in its place among the others.
func withPage(port *int32, ports []v1beta1.LolcowPort) []v1beta1.LolcowPort {
	page := v1beta1.LolcowPort{Name: v1beta1.PagePort, NodePort: port}
	if i := slices.IndexFunc(ports, isPage); i >= 0 {
		ports[i] = page
		return ports
	}
	if port == nil {
		return nil
	}
	return []v1beta1.LolcowPort{page}
}

// withPageStatus puts the port of v1alpha1 in its place among the others. 0 means that there is none.
func withPageStatus(port int32, ports []v1beta1.LolcowPortStatus) []v1beta1.LolcowPortStatus {
	page := v1beta1.LolcowPortStatus{Name: v1beta1.PagePort, NodePort: port}
	i := slices.IndexFunc(ports, isPageStatus)
	switch {
	case i >= 0 && port == 0:
		return slices.Delete(ports, i, i+1)
	case i >= 0:
		ports[i] = page
	case port != 0:
		ports = slices.Insert(ports, 0, page)
	}
	return ports[:min(len(ports), maxPorts)]
}

func isPage(port v1beta1.LolcowPort) bool { return port.Name == v1beta1.PagePort }

func isPageStatus(port v1beta1.LolcowPortStatus) bool { return port.Name == v1beta1.PagePort }

// pageOf returns the port that v1alpha1 shows, or an empty one.
func pageOf(ports []v1beta1.LolcowPort) v1beta1.LolcowPort {
	if i := slices.IndexFunc(ports, isPage); i >= 0 {
		return ports[i]
	}
	return v1beta1.LolcowPort{}
}

// pageStatusOf returns the port that v1alpha1 shows, or an empty one.
func pageStatusOf(ports []v1beta1.LolcowPortStatus) v1beta1.LolcowPortStatus {
	if i := slices.IndexFunc(ports, isPageStatus); i >= 0 {
		return ports[i]
	}
	return v1beta1.LolcowPortStatus{}
}
