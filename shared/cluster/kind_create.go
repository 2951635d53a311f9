package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/log"
)

// kindTimeout bounds the time from running containers to a cluster that takes pods.
const kindTimeout = 3 * time.Minute

// create makes the cluster and marks it as complete.
func (k *kindCluster) create(ctx context.Context, out io.Writer, image string) error {
	policyDir, err := writeAuditPolicy(k.name)
	if err != nil {
		return err
	}
	if err := k.createNodes(ctx, out, image, policyDir); err != nil {
		return err
	}
	if err := k.writeContext(true); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, kindTimeout)
	defer cancel()
	cfg, err := k.RESTConfig()
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if err := waitForNodes(ctx, clients); err != nil {
		return err
	}
	err = poll(ctx, "cluster DNS", func(ctx context.Context) (bool, error) {
		dns, err := clients.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, "coredns", metav1.GetOptions{})
		return err == nil && dns.Status.AvailableReplicas > 0, err
	})
	if err != nil {
		return err
	}
	_, err = clients.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(ctx, newMarker(image), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("marking the cluster as complete: %w", err)
	}
	return nil
}

// createNodes runs kind. kind knows no context: when ours ends, the containers are removed under
// its hands, which makes its next command fail and kind return.
func (k *kindCluster) createNodes(ctx context.Context, out io.Writer, image, policyDir string) error {
	done := make(chan error, 1)
	go func() {
		done <- k.withScratch(func(kubeconfig string) error {
			return k.provider.Create(k.name,
				cluster.CreateWithV1Alpha4Config(kindConfig(policyDir)),
				cluster.CreateWithNodeImage(image),
				cluster.CreateWithKubeconfigPath(kubeconfig),
				cluster.CreateWithDisplayUsage(false),
				cluster.CreateWithDisplaySalutation(false),
				// A failed creation removes its containers; what they could tell goes with them, so it
				// is in kind's error.
				cluster.CreateWithRetain(false))
		})
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("running kind: %w", err)
		}
		return ctx.Err()
	case <-ctx.Done():
		fmt.Fprintln(out, "==> interrupted: removing the half-made cluster")
		for {
			_ = k.deleteNodes() // reported by the caller's own delete
			select {
			case <-done: //nolint:errcheck // it was made to fail
				return context.Cause(ctx)
			case <-time.After(time.Second):
			}
		}
	}
}

// logger passes what kind tells its users on to out, and keeps the details of debugging away.
type logger struct{ out io.Writer }

func (l logger) Warn(message string)           { l.print(message) }
func (l logger) Warnf(format string, a ...any) { l.print(fmt.Sprintf(format, a...)) }
func (l logger) Error(message string)          { l.print(message) }
func (l logger) Errorf(f string, a ...any)     { l.print(fmt.Sprintf(f, a...)) }
func (l logger) Info(message string)           { l.print(message) }
func (l logger) Infof(f string, a ...any)      { l.print(fmt.Sprintf(f, a...)) }
func (l logger) Enabled() bool                 { return true }

func (l logger) V(level log.Level) log.InfoLogger {
	if level > 0 {
		return log.NoopInfoLogger{}
	}
	return l
}

// print leaves out what kind announces (" • "): it repeats each line when the step is done (" ✓ ").
// The pictures go too: not every terminal and no log has them.
func (l logger) print(message string) {
	message = strings.TrimSpace(message)
	if strings.HasPrefix(message, "•") {
		return
	}
	message = strings.Map(func(r rune) rune {
		if r > unicode.MaxLatin1 {
			return -1
		}
		return r
	}, message)
	fmt.Fprintln(l.out, "    "+strings.TrimSpace(message))
}
