package operator

import (
	"context"
	"flag"
	"io"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// parse parses flags as on the command line.
func parse(t *testing.T, args ...string) (flagged, error) {
	t.Helper()
	var o flagged
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.bind(flags)
	return o, flags.Parse(args)
}

func TestFlags(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("RELATED_IMAGE_FOO", "example.com/foo:1")
	o, err := parse(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o).To(Equal(flagged{Options: Options{
		MetricsAddress: ":8443", ProbeAddress: ":8081",
		LeaseDuration: 15 * time.Second, RenewDeadline: 6 * time.Second, RetryPeriod: 2 * time.Second,
		Image: "example.com/foo:1", Workers: 4, MaxRetries: 15,
	}}))
	o, err = parse(t, "--foo-image=example.com/foo:2", "--leader-elect", "--max-retries=0", "--leader-elect-lease-duration=1m")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.Image).To(Equal("example.com/foo:2"))
	g.Expect(o.LeaderElect).To(BeTrue())
	g.Expect(o.LeaseDuration).To(Equal(time.Minute))
	g.Expect(o.MaxRetries).To(BeZero())
}

func TestInvalidFlags(t *testing.T) {
	t.Setenv("RELATED_IMAGE_FOO", "")
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	never := func(context.Context, *rest.Config, Options) error { return nil }
	missing := filepath.Join(t.TempDir(), "missing")
	for want, args := range map[string][]string{
		"no image for the pods: give --foo-image or set RELATED_IMAGE_FOO": {},
		"--max-concurrent-reconciles is 0: at least 1 is needed":           {"--foo-image=foo", "--max-concurrent-reconciles=0"},
		"--leader-elect-lease-duration is 14s, and has to be more than ":   {"--foo-image=foo", "--leader-elect-lease-duration=14s"},
		"--max-retries is -1: it must not be negative":                     {"--foo-image=foo", "--max-retries=-1"},
		"finding the cluster: stat " + missing:                             {"--foo-image=foo", "--kubeconfig=" + missing},
		"finding the cluster: unable to load in-cluster configuration":     {"--foo-image=foo"},
	} {
		g := NewWithT(t)
		o, err := parse(t, args...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(o.start(never)).To(MatchError(HavePrefix(want)))
	}
}
