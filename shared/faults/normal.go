package faults

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// names knows what objects are called in timelines and comparisons: generated names differ from run to run.
type names struct {
	trial *trial

	mu      sync.Mutex
	symbols map[string]string
	counts  map[string]int
}

func newNames(tr *trial) *names {
	return &names{trial: tr, symbols: map[string]string{}, counts: map[string]int{}}
}

// symbol is what an object is called: its name, without the namespace that names of objects of the cluster begin with, or
// where the API server made it up, how it begins and its number.
func (tr *trial) symbol(resource schema.GroupResource, name string) string {
	if name == "" {
		return ""
	}
	if tr.names.known(name) {
		return tr.names.symbolOf(name)
	}
	for _, object := range tr.server.hub.live(tr.state.Namespace, resource) {
		if object.GetName() == name && object.GetGenerateName() != "" {
			return tr.names.add(name, object.GetGenerateName())
		}
	}
	return strings.TrimPrefix(name, clusterName(tr.state.Namespace, ""))
}

func (n *names) known(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.symbols[name] != ""
}

func (n *names) add(name, prefix string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[prefix]++
	n.symbols[name] = fmt.Sprintf("%s%d", prefix, n.counts[prefix])
	return n.symbols[name]
}

func (n *names) symbolOf(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if symbol := n.symbols[name]; symbol != "" {
		return symbol
	}
	return name
}

var (
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	uidPattern  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// masked replaces in a text what differs from run to run.
func (tr *trial) masked(text string) string {
	if tr.state.Namespace != "" {
		text = strings.ReplaceAll(text, tr.state.Namespace, "NAMESPACE")
	}
	for i, port := range tr.state.taken {
		text = strings.ReplaceAll(text, fmt.Sprint(port), fmt.Sprintf("PORT-%d", i))
	}
	text = timePattern.ReplaceAllString(text, "TIME")
	return uidPattern.ReplaceAllString(text, "UID")
}

// snapshot is what is there of the kinds that are compared.
func (tr *trial) snapshot() map[string]any {
	objects := map[string]any{}
	for _, kind := range tr.suite.Kinds {
		resource, err := tr.resourceOf(kind)
		if err != nil {
			tr.alarm("harness", fmt.Sprintf("%T", kind), err.Error())
			continue
		}
		for _, object := range tr.server.hub.live(tr.state.Namespace, resource) {
			objects[resource.Resource+"/"+tr.symbol(resource, object.GetName())] = tr.normal(object)
		}
	}
	return objects
}

// chosen is what the API server chooses at random: addresses of Services, and node ports that no operation names. Two runs may
// get the same by chance, and then the comparison of two undisturbed runs would not show that it varies.
const chosen = "chosen"

// The node ports of an API server, unless --service-node-port-range says otherwise.
const firstNodePort, lastNodePort = 30000, 32767

// normal is an object without what differs from run to run.
func (tr *trial) normal(object *unstructured.Unstructured) any {
	content := object.DeepCopy()
	generation := content.GetGeneration()
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "namespace", "name"} {
		unstructured.RemoveNestedField(content.Object, "metadata", field)
	}
	return tr.normalValue(content.Object, generation)
}

func (tr *trial) normalValue(value any, generation int64) any {
	switch value := value.(type) {
	case map[string]any:
		for key, one := range value {
			value[key] = tr.normalField(key, one, generation)
		}
		return value
	case []any:
		for i := range value {
			value[i] = tr.normalValue(value[i], generation)
		}
		return value
	case string:
		return tr.masked(tr.names.symbolOf(value))
	case int64:
		for i, port := range tr.state.taken {
			if value == int64(port) {
				return fmt.Sprintf("PORT-%d", i)
			}
		}
		if firstNodePort <= value && value <= lastNodePort {
			return chosen
		}
		return value
	}
	return value
}

func (tr *trial) normalField(key string, value any, generation int64) any {
	switch key {
	case "observedGeneration":
		if seen, isNumber := value.(int64); isNumber && seen == generation {
			return "current"
		} else if isNumber {
			return "older"
		}
	case "uid":
		return tr.uid(fmt.Sprint(value))
	case "clusterIP", "clusterIPs":
		if !strings.Contains(fmt.Sprint(value), corev1.ClusterIPNone) {
			return chosen
		}
	}
	return tr.normalValue(value, generation)
}

// uid is what a UID refers to.
func (tr *trial) uid(uid string) string {
	for _, resource := range tr.server.hub.resources() {
		for _, object := range tr.server.hub.live(tr.state.Namespace, resource) {
			if string(object.GetUID()) == uid {
				return "that of " + resource.Resource + "/" + tr.symbol(resource, object.GetName())
			}
		}
	}
	return "that of nothing"
}
