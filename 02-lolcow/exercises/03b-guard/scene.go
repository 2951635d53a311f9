package guard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// scene is a folder with kubeconfigs, and the servers to which they lead.
type scene struct {
	b          *check.B
	entry      Entry
	dir        string
	files      int
	production *production
	namespace  string
}

func newScene(b *check.B, entry Entry) *scene {
	dir, err := os.MkdirTemp("", "guard-")
	if err != nil {
		b.Fatalf("%v", err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &scene{b: b, entry: entry, dir: dir, production: newProduction(b)}
}

// file writes a kubeconfig with these contexts, and returns its name. dev leads to the API server, all others to production.
func (s *scene) file(current string, contexts ...string) string {
	config := api.NewConfig()
	config.CurrentContext = current
	for _, name := range contexts {
		cluster, user := "cluster-"+name, "user-"+name
		config.Contexts[name] = &api.Context{Cluster: cluster, AuthInfo: user}
		config.Clusters[cluster] = &api.Cluster{Server: s.production.server.URL}
		config.AuthInfos[user] = &api.AuthInfo{}
		if name == "dev" {
			access := kube.Config(s.b)
			config.Clusters[cluster] = &api.Cluster{Server: access.Host, CertificateAuthorityData: access.CAData}
			config.AuthInfos[user] = &api.AuthInfo{ClientCertificateData: access.CertData, ClientKeyData: access.KeyData}
		}
	}
	file := s.missing()
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		s.b.Fatalf("writing a kubeconfig: %v", err)
	}
	s.b.Event("%s has the contexts %q, and the current context %q", filepath.Base(file), contexts, current)
	return file
}

// missing returns the name of a file that does not exist.
func (s *scene) missing() string {
	s.files++
	return filepath.Join(s.dir, fmt.Sprintf("config-%d", s.files))
}

// run calls the tool, for a new namespace.
func (s *scene) run(allow string, files []string) error {
	s.namespace = kube.Namespace(s.b)
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	s.b.Event("the tool is called: kubeconfig %s, allow %q", strings.Join(names, string(filepath.ListSeparator)), allow)
	err := s.entry(s.b.Context(), strings.Join(files, string(filepath.ListSeparator)), allow, s.namespace)
	s.b.Event("  it returned: %v", err)
	return err
}

// deleted says whether the namespace is gone, or about to go.
func (s *scene) deleted() bool {
	namespace, err := kube.Client(s.b).CoreV1().Namespaces().Get(s.b.Context(), s.namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true
	}
	if err != nil {
		s.b.Fatalf("reading the namespace: %v", err)
	}
	return namespace.DeletionTimestamp != nil
}

// production is a server that accepts each request, and notes it.
type production struct {
	b      *check.B
	server *httptest.Server

	mu   sync.Mutex
	sent []string
}

func newProduction(b *check.B) *production {
	p := &production{b: b}
	p.server = httptest.NewServer(p)
	b.Cleanup(p.server.Close)
	return p
}

// ServeHTTP notes a request. What it says is a version, and a Status.
func (p *production) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.b.Event("  production gets %s %s", r.Method, r.URL.Path)
	p.mu.Lock()
	p.sent = append(p.sent, r.Method+" "+r.URL.Path)
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	// It is noted; who reads it is not of interest.
	_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success","gitVersion":"v1.37.0"}`)
}

// first is the first request, or an empty string.
func (p *production) first() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sent) == 0 {
		return ""
	}
	return p.sent[0]
}
