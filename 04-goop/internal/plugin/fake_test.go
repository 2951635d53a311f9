package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// fake has the few endpoints of an API server that the program uses, and logs, which envtest does not have. Its tests
// simulate the operator and the kubelets.
type fake struct {
	t          *testing.T
	server     *httptest.Server
	slow       *slow
	kubeconfig string

	lock       sync.Mutex
	changed    chan struct{} // closed at the next change
	version    int
	events     []fakeEvent
	goops      map[string]*v1alpha1.Goop
	pods       map[string]*corev1.Pod
	logs       map[string]http.HandlerFunc // by pod
	rejections map[string]metav1.Status    // by "VERB RESOURCE"
	requests   map[string]int              // likewise
	onCreate   func(*v1alpha1.Goop)
	created    string // the name of the last one
	broken     broken
	stale      bool // lists from the watch cache lack existing objects, and streaming lists (WatchList) are not supported

	open, mostOpen int // log streams
}

// kinds are the types of the objects of each resource.
var kinds = map[string]metav1.TypeMeta{
	"goops": {APIVersion: "goop.example.com/v1alpha1", Kind: "Goop"}, "pods": {APIVersion: "v1", Kind: "Pod"},
}

type fakeEvent struct {
	version  int
	resource string
	kind     string
	object   metav1.Object
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{
		t: t, changed: make(chan struct{}), goops: map[string]*v1alpha1.Goop{}, pods: map[string]*corev1.Pod{},
		logs: map[string]http.HandlerFunc{}, rejections: map[string]metav1.Status{}, requests: map[string]int{},
	}
	mux := http.NewServeMux()
	goops := "/apis/goop.example.com/v1alpha1/namespaces/test/goops"
	mux.HandleFunc("POST "+goops, f.create)
	mux.HandleFunc("GET "+goops, f.list("goops"))
	mux.HandleFunc("GET "+goops+"/{name}", f.get)
	mux.HandleFunc("PATCH "+goops+"/{name}", f.patch)
	mux.HandleFunc("DELETE "+goops+"/{name}", f.delete)
	mux.HandleFunc("GET /api/v1/namespaces/test/pods", f.list("pods"))
	mux.HandleFunc("GET /api/v1/namespaces/test/pods/{name}/log", f.log)
	f.slow = &slow{Handler: mux}
	f.server = httptest.NewServer(f.slow)
	t.Cleanup(func() {
		f.server.CloseClientConnections()
		f.server.Close()
	})
	f.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"fake","clusters":[{"name":"fake","cluster":{"server":%q}}],
"users":[{"name":"me","user":{}}],"contexts":[{"name":"fake","context":{"cluster":"fake","user":"me","namespace":"test"}},{"name":"other","context":{"cluster":"fake","user":"me"}}]}`,
		f.server.URL)
	if err := os.WriteFile(f.kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func respond(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

// change stores an object, and notifies the watches.
func (f *fake) change(resource, kind string, object metav1.Object) {
	f.version++
	object.SetResourceVersion(strconv.Itoa(f.version))
	f.events = append(f.events, fakeEvent{f.version, resource, kind, object})
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) create(w http.ResponseWriter, r *http.Request) {
	if f.rejected(w, "create goops") {
		return
	}
	f.breakOff(false)
	goop := &v1alpha1.Goop{}
	if err := json.NewDecoder(r.Body).Decode(goop); err != nil {
		respond(w, 400, failure(400, metav1.StatusReasonBadRequest, err.Error(), ""))
		return
	}
	f.lock.Lock()
	if f.goops[goop.Name] != nil {
		f.lock.Unlock()
		respond(w, 409, failure(409, metav1.StatusReasonAlreadyExists, "already exists", goop.Name))
		return
	}
	goop.UID, goop.Generation, goop.Namespace = types.UID(goop.Name), 1, "test"
	goop.CreationTimestamp = metav1.Now()
	f.goops[goop.Name], f.created = goop, goop.Name
	f.change("goops", "ADDED", goop.DeepCopy())
	onCreate, copied := f.onCreate, goop.DeepCopy()
	f.lock.Unlock()
	if onCreate != nil {
		go onCreate(copied)
	}
	f.breakOff(true)
	respond(w, 201, copied)
}

func (f *fake) get(w http.ResponseWriter, r *http.Request) {
	if f.rejected(w, "get goops") {
		return
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if goop := f.goops[r.PathValue("name")]; goop != nil {
		respond(w, 200, goop)
		return
	}
	respond(w, 404, failure(404, metav1.StatusReasonNotFound, "goops not found", r.PathValue("name")))
}

func (f *fake) patch(w http.ResponseWriter, r *http.Request) {
	if f.rejected(w, "patch goops") {
		return
	}
	text, _ := io.ReadAll(r.Body)
	f.update(r.PathValue("name"), func(goop *v1alpha1.Goop) { _ = json.Unmarshal(text, goop) })
	f.get(w, r)
}

func (f *fake) delete(w http.ResponseWriter, r *http.Request) {
	if f.rejected(w, "delete goops") {
		return
	}
	f.remove(r.PathValue("name"))
	respond(w, 200, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Success"})
}

// list serves lists, watches, and watches with an initial list.
func (f *fake) list(resource string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		watched := query.Get("watch") == "true" || query.Get("watch") == "1"
		verb := map[bool]string{true: "watch ", false: "list "}[watched]
		if f.rejected(w, verb+resource) {
			return
		}
		selected := selector(query.Get("labelSelector"), query.Get("fieldSelector"))
		f.lock.Lock()
		stale := f.stale
		f.lock.Unlock()
		if stale && query.Get("sendInitialEvents") == "true" {
			respond(w, 422, failure(422, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden", ""))
			return
		}
		if stale && resource == "goops" && query.Get("resourceVersion") == "0" {
			respond(w, 200, listed(resource, []metav1.Object{}, 0))
			return
		}
		if !watched {
			f.lock.Lock()
			defer f.lock.Unlock()
			respond(w, 200, listed(resource, f.now(resource, selected), f.version))
			return
		}
		f.watch(w, r, resource, selected)
	}
}

// listed returns a list in the format of the API.
func listed(resource string, items []metav1.Object, version int) map[string]any {
	of := kinds[resource]
	return map[string]any{
		"kind": of.Kind + "List", "apiVersion": of.APIVersion, "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(version)},
	}
}

func selector(byLabel, byField string) func(metav1.Object) bool {
	wanted, err := labels.Parse(byLabel)
	if err != nil {
		wanted = labels.Nothing()
	}
	name := strings.TrimPrefix(byField, "metadata.name=")
	return func(object metav1.Object) bool {
		return wanted.Matches(labels.Set(object.GetLabels())) && (name == "" || object.GetName() == name)
	}
}

func (f *fake) now(resource string, selected func(metav1.Object) bool) []metav1.Object {
	all := []metav1.Object{}
	if resource == "goops" {
		for _, goop := range f.goops {
			all = append(all, goop)
		}
	} else {
		for _, pod := range f.pods {
			all = append(all, pod)
		}
	}
	all = slices.DeleteFunc(all, func(object metav1.Object) bool { return !selected(object) })
	slices.SortFunc(all, func(a, b metav1.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

func (f *fake) watch(w http.ResponseWriter, r *http.Request, resource string, selected func(metav1.Object) bool) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	send := func(kind string, object any) { _ = encoder.Encode(map[string]any{"type": kind, "object": object}) }
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		f.lock.Lock()
		for _, object := range f.now(resource, selected) {
			send("ADDED", object)
		}
		since = f.version
		f.lock.Unlock()
		send("BOOKMARK", map[string]any{"kind": kinds[resource].Kind, "apiVersion": kinds[resource].APIVersion, "metadata": map[string]any{
			"resourceVersion": strconv.Itoa(since), "annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
	}
	for {
		f.lock.Lock()
		from, _ := slices.BinarySearchFunc(f.events, since+1, func(e fakeEvent, version int) int { return e.version - version })
		fresh, changed := slices.Clone(f.events[from:]), f.changed
		f.lock.Unlock()
		for _, event := range fresh {
			since = event.version
			if event.resource == resource && selected(event.object) {
				send(event.kind, event.object)
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
