package exercise

import (
	"context"
	"io"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/proc"
)

// One server after the other: each takes seconds to start.
func TestServers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	root := t.TempDir()
	var notes []string
	note := func(text string) { notes = append(notes, text) }
	pool := NewServers(root)
	defer pool.Close()

	// 1. What a run leaves in its namespaces is deleted, whatever finalizers it has.
	lease, err := pool.acquire(ctx, false, note)
	g.Expect(err).NotTo(HaveOccurred())
	first := lease.server
	client := clientOf(g, first)
	leave(ctx, g, client, "run-1")
	g.Expect(lease.release(ctx, "run-1")).To(Succeed())
	g.Expect(pool.leftovers(ctx)).To(BeEmpty())

	// 2. The next run has the same server, and so has one of another pool in this clone.
	lease, err = pool.acquire(ctx, false, note)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lease.server).To(BeIdenticalTo(first))
	other := NewServers(root)
	attached, err := other.acquire(ctx, false, note)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(attached.file()).To(Equal(lease.file()))
	leave(ctx, g, client, "run-2")
	g.Expect(attached.release(ctx, "run-2")).To(Succeed())
	g.Expect(other.Close()).To(Succeed(), "it deletes what its runs left, and the server goes on")
	g.Expect(pool.leftovers(ctx)).To(BeEmpty())

	// 3. What is in no run's namespace is reported to authors.
	stray := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "stray"}}
	_, err = client.CoreV1().Namespaces().Create(ctx, stray, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pool.leftovers(ctx)).To(ConsistOf("namespaces /stray"))

	// 4. A server that died is replaced.
	g.Expect(proc.End(ctx, io.Discard, proc.Naming(ctx, first.dir), time.Second)).To(Succeed())
	lease, err = pool.acquire(ctx, false, note)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lease.server).NotTo(BeIdenticalTo(first))
	g.Expect(notes).To(ContainElement(ContainSubstring("does not respond any more")))
	g.Expect(first.dir).NotTo(BeADirectory())

	g.Expect(pool.Close()).To(Succeed())
	g.Expect(filepath.Glob(filepath.Join(serversDir(root), "*"))).To(BeEmpty())
}

func TestAServerOfItsOwnIsAsAtTheStart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	pool := NewServers(t.TempDir())
	defer pool.Close()
	lease, err := pool.acquire(ctx, true, func(string) {})
	g.Expect(err).NotTo(HaveOccurred())
	client := clientOf(g, lease.server)
	leave(ctx, g, client, "run-1")
	_, err = client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lease.release(ctx, "run-1")).To(Succeed())
	g.Expect(pool.leftovers(ctx)).To(BeEmpty())

	again, err := pool.acquire(ctx, true, func(string) {})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.server).To(BeIdenticalTo(lease.server))
}

func clientOf(g Gomega, s *server) kubernetes.Interface {
	client, err := kubernetes.NewForConfig(s.config)
	g.Expect(err).NotTo(HaveOccurred())
	return client
}

// leave creates what a run may leave that crashed.
func leave(ctx context.Context, g Gomega, client kubernetes.Interface, run string) {
	namespace, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "exercise-", Labels: map[string]string{check.RunLabel: run},
	}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().ConfigMaps(namespace.Name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Finalizers: []string{"example.com/held"},
	}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}
