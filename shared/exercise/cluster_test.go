package exercise

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/exercise/check"
)

// The cluster of this test is an API server alone, and its Makefile notes what it is asked for.
func TestTheEmbeddedCluster(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	pool := NewServers(t.TempDir())
	defer pool.Close()
	g.Expect(pool.Start(ctx, func(string) {})).To(Succeed())

	for name, c := range map[string]struct{ says, asked string }{
		"one that was started ends with the pool": {"the cluster is up", "cluster embedded\ncluster-delete embedded\n"},
		"one that was up stays":                   {"the embedded cluster workbook is up already", "cluster embedded\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			root := t.TempDir()
			write(t, filepath.Join(root, "Makefile"), "cluster cluster-delete kubectl:\n\t@echo $@ $(CLUSTER) >> asked\n\t@echo '"+c.says+"'\n")
			kubeconfig(t, filepath.Join(root, ".kube", "config"), pool.shared)

			clusters := NewServers(root)
			e := Exercise{Needs: Cluster}
			lease, err := clusters.acquireFor(ctx, e, func(string) {})
			g.Expect(err).NotTo(HaveOccurred())
			client := clientOf(g, lease.server)
			run := strings.ReplaceAll(name, " ", "-")
			leave(ctx, g, client, run)
			g.Expect(lease.release(ctx, run)).To(Succeed())
			list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: check.RunLabel + "=" + run})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(list.Items).To(ConsistOf(HaveField("DeletionTimestamp", Not(BeNil()))))

			_, err = clusters.acquireFor(ctx, e, func(string) {})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(clusters.Close()).To(Succeed())
			g.Expect(os.ReadFile(filepath.Join(root, "asked"))).To(BeEquivalentTo(c.asked), "it is asked for once")
			g.Expect(filepath.Glob(filepath.Join(serversDir(root), "*"))).To(BeEmpty())
		})
	}
}

// At first there is no kubeconfig, and later the API server has gone.
func TestAClusterThatCannotBeReachedEnds(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	root := t.TempDir()
	write(t, filepath.Join(root, "Makefile"), "cluster cluster-delete:\n\t@echo $@ >> asked\n\t@echo 'the cluster is up'\n")
	asked := filepath.Join(root, "asked")
	clusters := NewServers(root)
	e := Exercise{Needs: Cluster}
	_, err := clusters.acquireFor(ctx, e, func(string) {})
	g.Expect(err).To(MatchError(ContainSubstring("the access to the embedded cluster")))
	g.Expect(os.ReadFile(asked)).To(BeEquivalentTo("cluster\ncluster-delete\n"))

	up := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: up.Certificate().Raw})
	kubeconfig(t, filepath.Join(root, ".kube", "config"), &server{config: &rest.Config{Host: up.URL, TLSClientConfig: rest.TLSClientConfig{CAData: certificate}}})
	_, err = clusters.acquireFor(ctx, e, func(string) {})
	g.Expect(err).NotTo(HaveOccurred())
	up.Close()
	_, err = clusters.acquireFor(ctx, e, func(string) {})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.ReadFile(asked)).To(BeEquivalentTo(strings.Repeat("cluster\ncluster-delete\n", 2)+"cluster\n"), "the old one is ended first")
	g.Expect(clusters.Close()).To(Succeed())
	g.Expect(filepath.Glob(filepath.Join(serversDir(root), "*"))).To(BeEmpty())
}

// A SIGTERM of this process alone reaches nothing that make has started.
func TestTheStartOfAClusterThatIsCancelledEnds(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	root := t.TempDir()
	// Many short sleeps, and not one: a signal to the group can come after the shell has made a child, and before the child is sleep.
	write(t, filepath.Join(root, "Makefile"), "cluster:\n\t@trap 'echo ended >>asked; exit 1' INT; echo begun >>asked; "+
		"for i in $$(seq 600); do sleep 0.1; done; echo missed >>asked\n")
	asked := func() string {
		content, _ := os.ReadFile(filepath.Join(root, "asked"))
		return string(content)
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := NewServers(root).acquireFor(ctx, Exercise{Needs: Cluster}, func(string) {})
		failed <- err
	}()
	g.Eventually(asked, 30*time.Second).Should(Equal("begun\n"))
	cancel()
	g.Eventually(failed, 30*time.Second).Should(Receive(HaveOccurred()))
	g.Expect(asked()).To(Equal("begun\nended\n"))
}

// kubeconfig writes a file that leads to the server under the name of the embedded cluster.
func kubeconfig(t *testing.T, file string, s *server) {
	t.Helper()
	access := api.NewConfig()
	access.Clusters["c"] = &api.Cluster{Server: s.config.Host, CertificateAuthorityData: s.config.CAData}
	access.AuthInfos["c"] = &api.AuthInfo{ClientCertificateData: s.config.CertData, ClientKeyData: s.config.KeyData}
	access.Contexts[config.ContextName("embedded", config.ClusterName())] = &api.Context{Cluster: "c", AuthInfo: "c"}
	write(t, file, "")
	NewWithT(t).Expect(clientcmd.WriteToFile(*access, file)).To(Succeed())
}
