package mirror

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

const (
	copyLabel        = "mirror.example.com/copy"
	sourceAnnotation = "mirror.example.com/source"
	// targetLabel selects the namespaces of one behaviour: its value is the namespace of the source.
	targetLabel = "mirror.example.com/target-of"
	secretName  = "word"
)

// cluster is a source, some namespaces, and a process that runs the reader's function.
type cluster struct {
	b      *check.B
	entry  Entry
	client kubernetes.Interface
	wire   *kube.Wire
	source types.NamespacedName
	// namespaces have a short name for the reader.
	namespaces map[string]string
	// alone are the resourceVersions of Secrets that are no copies, by namespace.
	alone map[string]string
	// process is set if it may crash, and crash says where it does.
	process *kube.Process
	crash   string

	verify  chan time.Time
	cancel  context.CancelFunc
	stopped <-chan struct{}
	err     error
}

func newCluster(b *check.B, entry Entry) *cluster {
	source := kube.Namespace(b)
	return &cluster{
		b: b, entry: entry, client: kube.Client(b), wire: kube.NewWire(b),
		source:     types.NamespacedName{Namespace: source, Name: secretName},
		namespaces: map[string]string{source: source}, alone: map[string]string{},
	}
}

// replica is another process for the same namespaces.
func (c *cluster) replica() *cluster {
	other := *c
	other.wire = kube.NewWire(c.b)
	return &other
}

// run starts the reader's function. One that crashes is started again.
func (c *cluster) run() {
	ctx, cancel := context.WithCancel(c.b.Context())
	client, verify := c.wire.Client(), make(chan time.Time)
	c.cancel, c.verify = cancel, verify
	selector := labels.SelectorFromSet(labels.Set{targetLabel: c.source.Namespace})
	c.b.Event("Run begins")
	c.stopped = c.b.Go(func() {
		if c.process == nil {
			c.err = c.entry(ctx, client, c.source, selector, verify)
			return
		}
		life := func(process context.Context) error {
			both, end := context.WithCancel(process)
			defer end()
			defer context.AfterFunc(ctx, end)()
			return c.entry(both, client, c.source, selector, verify)
		}
		if c.err = c.process.Run(life); ctx.Err() == nil && c.process.Crashed() {
			c.b.Event("Run begins again")
			c.err = c.process.Run(life)
		}
	})
}

// stop ends the context, and waits for the reader's function.
func (c *cluster) stop() {
	c.b.Event("the context of Run ends")
	c.cancel()
	c.ends()
	if c.err != nil {
		c.b.Fatalf("the context has ended, and Run returned an error: %v", c.err)
	}
	c.selective()
}

func (c *cluster) ends() {
	select {
	case <-c.stopped:
	case <-time.After(c.b.Patience(patience)):
		c.b.Fatalf("the context has ended, and Run does not return")
	}
}

// running fails if the reader's function has returned by itself.
func (c *cluster) running() {
	select {
	case <-c.stopped:
		c.b.Fatalf("%sthe context has not ended, and Run has returned, with the error: %v", c.crash, c.err)
	default:
	}
}

// verifyAll lets everything be compared. When a value is taken for the second time, what the first one has led to has at least begun.
func (c *cluster) verifyAll() {
	for range 2 {
		c.b.Event("verify has a value")
		select {
		case c.verify <- time.Now():
		case <-c.stopped:
			c.running()
		case <-time.After(c.b.Patience(patience)):
			c.b.Fatalf("Run does not take the values from verify")
		}
	}
}

// watching waits until the source, the namespaces and the copies are watched.
func (c *cluster) watching() {
	c.b.Eventually(patience, func() string {
		if n := c.wire.OpenWatches(); n < 2 {
			return fmt.Sprintf("%d watches are open, and the source, the namespaces and the copies have to be watched", n)
		}
		return ""
	})
}

// justBefore lets a user act just before the first write of a kind in a namespace. The result returns the resourceVersion of what is no
// copy then, once it is there.
func (c *cluster) justBefore(name string, kind func(kube.Request) bool, act func(c *cluster) string) func() string {
	var mu sync.Mutex
	version := ""
	c.wire.Before(func(r kube.Request, _ *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if version == "" && r.Resource == "secrets" && r.Namespace == c.namespaces[name] && kind(r) {
			version = act(c)
		}
		return nil, nil
	})
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return version
	}
}

// takesTheName lets another Secret have the name in b.
func takesTheName(c *cluster) string {
	c.b.Event("  just before that, a user gives the name to another Secret")
	if err := c.secrets("b").Delete(c.b.Context(), secretName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return ""
	}
	return c.another("b", nil, nil)
}

// losesItsLabel makes the copy in b one that is none.
func losesItsLabel(c *cluster) string {
	c.b.Event("  just before that, a user takes the label off the copy")
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, copyLabel)
	secret, err := c.secrets("b").Patch(c.b.Context(), secretName, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return ""
	}
	return secret.ResourceVersion
}

// expect waits until these namespaces have a copy with the word, and no other of them has one.
func (c *cluster) expect(word string, names ...string) { c.expectData("word="+word, names...) }

// expectData does that for all of the data, as describe says it.
func (c *cluster) expectData(data string, names ...string) {
	slices.Sort(names)
	c.b.Eventually(patience, func() string {
		c.running()
		c.untouched()
		found := map[string]string{}
		for name := range c.namespaces {
			if live := c.secret(name); live != nil && name != c.source.Namespace && c.isCopy(live) {
				found[name] = c.describe(live)
			}
		}
		want := map[string]string{}
		for _, name := range names {
			want[name] = data
		}
		if maps.Equal(found, want) {
			return ""
		}
		return fmt.Sprintf("%sthe copies should be %s, and are %s", c.crash, list(want), list(found))
	})
	c.b.Event("the copies are right: %q in %v", data, names)
}

func list(copies map[string]string) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(copies)) {
		texts = append(texts, name+" ("+copies[name]+")")
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

func (c *cluster) describe(secret *corev1.Secret) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		texts = append(texts, key+"="+string(secret.Data[key]))
	}
	return strings.Join(texts, " ")
}

func (c *cluster) isCopy(secret *corev1.Secret) bool {
	return secret.Labels[copyLabel] == "true" && secret.Annotations[sourceAnnotation] == c.source.String() && secret.DeletionTimestamp == nil
}
