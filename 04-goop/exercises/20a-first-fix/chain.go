package firstfix

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const (
	chainName = "chain"
	// most is how many calls one disturbance may need.
	most = 60
	// notALink is the number in a name like that of a link, without the label.
	notALink = 99
)

// chain is a chain in a namespace of its own, the queue of its controller, and the controller that makes links ready.
type chain struct {
	b      *check.B
	entry  Entry
	wire   *kube.Wire
	client typedcorev1.ConfigMapInterface
	reader typedcorev1.ConfigMapInterface

	// What is asserted after each call. Each is the subject of one behaviour.
	ordered, oneWrite, lastFirst bool
	mayUnready                   bool
	// written is the number of the link that writesMeanwhile has changed.
	written int
}

func newChain(b *check.B, entry Entry, length int) *chain {
	namespace := kube.Namespace(b)
	c := &chain{b: b, entry: entry, wire: kube.NewWire(b), mayUnready: true}
	c.client = kube.Client(b).CoreV1().ConfigMaps(namespace)
	c.reader = c.wire.Client().CoreV1().ConfigMaps(namespace)
	c.create(chainName, nil, map[string]string{"length": strconv.Itoa(length), "text": "Moo"})
	// It is another user's, whatever its name is.
	c.create(linkName(notALink), nil, map[string]string{"text": "not a link"})
	return c
}

func linkName(number int) string { return fmt.Sprintf("%s-%d", chainName, number) }

func (c *chain) create(name string, labels, data map[string]string) {
	_, err := c.client.Create(c.b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: data},
		metav1.CreateOptions{})
	if err != nil {
		c.b.Fatalf("creating ConfigMap %s: %v", name, err)
	}
}

// patch changes a key of the data.
func (c *chain) patch(name, key, value string) {
	patch := fmt.Appendf(nil, `{"data":{%q:%q}}`, key, value)
	if _, err := c.client.Patch(c.b.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		c.b.Fatalf("changing ConfigMap %s: %v", name, err)
	}
}

// set changes the chain, as a user.
func (c *chain) set(key, value string) {
	c.b.Event("the user sets %s of the chain to %q", key, value)
	c.patch(chainName, key, value)
}

// writesMeanwhile lets the other controller write a key of a link just before the next write of it.
func (c *chain) writesMeanwhile(key, value string) {
	var once sync.Once
	c.wire.Before(func(request kube.Request, _ *http.Request) (*http.Response, error) {
		if number, err := strconv.Atoi(strings.TrimPrefix(request.Name, chainName+"-")); err == nil && kube.Writes(request) {
			once.Do(func() {
				c.written = number
				c.b.Event("the other controller writes %s of %s", key, request.Name)
				c.patch(request.Name, key, value)
			})
		}
		return nil, nil
	})
}

// state has the links by number.
type state map[int]*corev1.ConfigMap

func (c *chain) state() state {
	list, err := c.client.List(c.b.Context(), metav1.ListOptions{LabelSelector: "chain=" + chainName})
	if err != nil {
		c.b.Fatalf("listing ConfigMaps: %v", err)
	}
	links := state{}
	for i := range list.Items {
		number, err := strconv.Atoi(strings.TrimPrefix(list.Items[i].Name, chainName+"-"))
		if err != nil {
			c.b.Fatalf("a link is called %s", list.Items[i].Name)
		}
		links[number] = &list.Items[i]
	}
	return links
}

func (s state) ready(number int) bool {
	return s[number] != nil && s[number].Data["ready"] == "yes"
}

// readiness says what a link has in data.ready.
func (s state) readiness(number int) string {
	if s[number] == nil {
		return "it does not exist"
	}
	return fmt.Sprintf("its data.ready is %q", s[number].Data["ready"])
}

// last is the number of the last link that there is.
func (s state) last() int { return slices.Max(slices.Collect(maps.Keys(s))) }

func (s state) versions() map[int]string {
	versions := map[int]string{}
	for number, link := range s {
		versions[number] = string(link.UID) + link.ResourceVersion
	}
	return versions
}

func (s state) String() string {
	var links []string
	for _, number := range slices.Sorted(maps.Keys(s)) {
		links = append(links, fmt.Sprintf("%s %q", linkName(number), s[number].Data["text"]))
	}
	return "[" + strings.Join(links, ", ") + "]"
}

// call calls Reconcile once, and returns what it wrote.
func (c *chain) call() ([]string, error) {
	seen := len(c.wire.Requests())
	c.b.Event("Reconcile")
	err := c.entry(c.b.Context(), c.reader, chainName)
	if err != nil {
		c.b.Event("  it returned the error: %v", err)
	}
	var writes []string
	for _, request := range c.wire.Requests()[seen:] {
		if kube.Writes(request) {
			writes = append(writes, request.String())
		}
	}
	return writes, err
}

// converge calls Reconcile as long as something triggers it. Then the chain has to be what it should be.
func (c *chain) converge() {
	before := c.state()
	for range most {
		writes, err := c.call()
		after := c.state()
		c.inspect(before, after, writes)
		changed := !maps.Equal(before.versions(), after.versions())
		if err == nil && !changed && !c.makeReady(after) {
			c.expect(after)
			return
		}
		before = c.state()
	}
	c.b.Fatalf("after %d calls there is still no end; the links are %v", most, before)
}

// makeReady is the other controller. It makes one link ready, which is a change that triggers a reconciliation.
func (c *chain) makeReady(links state) bool {
	for _, number := range slices.Sorted(maps.Keys(links)) {
		if !links.ready(number) {
			value := "yes"
			if _, found := links[number].Data["ready"]; c.ordered && !found {
				value = "not yet"
			}
			c.b.Event("the other controller writes into %s that it is ready: %s", linkName(number), value)
			c.patch(linkName(number), "ready", value)
			return true
		}
	}
	return false
}

// inspect looks at what one call has done.
func (c *chain) inspect(before, after state, writes []string) {
	if c.oneWrite && len(writes) > 1 {
		c.b.Fatalf("one call sent %d writes: %s", len(writes), strings.Join(writes, ", "))
	}
	for _, number := range slices.Sorted(maps.Keys(after)) {
		c.inspectLink(number, before, after)
	}
	for _, number := range slices.Sorted(maps.Keys(before)) {
		if c.lastFirst && after[number] == nil && number != before.last() {
			c.b.Fatalf("%s was deleted, and there was one after it", linkName(number))
		}
	}
}

// inspectLink looks at a link that is there after a call.
func (c *chain) inspectLink(number int, before, after state) {
	if c.ordered && before[number] == nil && number > 0 && !before.ready(number-1) {
		c.b.Fatalf("%s was created, and %s was not ready: %s", linkName(number), linkName(number-1), before.readiness(number-1))
	}
	if _, found := after[number].Data["ready"]; !c.mayUnready && before[number] == nil && found {
		c.b.Fatalf("%s was created with data.ready, which is for the other controller to write", linkName(number))
	}
	if !c.mayUnready && before.ready(number) && !after.ready(number) {
		c.b.Fatalf("the other controller had made %s ready, and now its data is %v", linkName(number), after[number].Data)
	}
}

// expect compares the links with the chain.
func (c *chain) expect(links state) {
	object, err := c.client.Get(c.b.Context(), chainName, metav1.GetOptions{})
	if err != nil {
		c.b.Fatalf("reading the chain: %v", err)
	}
	length, err := strconv.Atoi(object.Data["length"])
	if err != nil {
		c.b.Fatalf("reading the chain: %v", err)
	}
	right := len(links) == length
	for number := range length {
		right = right && links[number] != nil && links[number].Data["text"] == object.Data["text"]
	}
	if !right {
		c.b.Fatalf("nothing triggers another call. The chain has length %d and text %q, and the links are %v", length, object.Data["text"], links)
	}
	other, err := c.client.Get(c.b.Context(), linkName(notALink), metav1.GetOptions{})
	if err != nil || other.Data["text"] != "not a link" {
		c.b.Fatalf("%s, which is no link, was changed: %v (%v)", linkName(notALink), other.Data, err)
	}
}

// disturb does something that a user, or another program, might do.
func (c *chain) disturb(random *rand.Rand) {
	links := c.state()
	number := random.IntN(5)
	name := linkName(number)
	switch what := random.IntN(5); {
	case what == 0:
		c.set("length", strconv.Itoa(random.IntN(5)))
	case what == 1:
		c.set("text", strconv.Itoa(random.IntN(1000)))
	case links[number] == nil:
		c.b.Event("a user creates %s", name)
		c.create(name, map[string]string{"chain": chainName}, map[string]string{"text": "mine"})
	case what == 2:
		c.b.Event("a user changes the text of %s", name)
		c.patch(name, "text", "mine")
	case what == 3:
		c.b.Event("the other controller takes the mark ready from %s", name)
		c.patch(name, "ready", "no")
	default:
		c.b.Event("a user deletes %s", name)
		if err := c.client.Delete(c.b.Context(), name, metav1.DeleteOptions{}); err != nil {
			c.b.Fatalf("deleting %s: %v", name, err)
		}
	}
}
