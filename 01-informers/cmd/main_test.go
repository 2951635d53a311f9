package main

import (
	"flag"
	"io"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/operator"
)

// parse reads flags as a user would type them.
func parse(t *testing.T, args ...string) (options, error) {
	t.Helper()
	var o options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.declare(flags)
	return o, flags.Parse(args)
}

func TestFlags(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("RELATED_IMAGE_FOO", "example.com/foo:1")
	o, err := parse(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o).To(Equal(options{implementation: "raw", Options: operator.Options{
		MetricsAddress: ":8443", ProbeAddress: ":8081",
		LeaseDuration: 15 * time.Second, RenewDeadline: 8 * time.Second, RetryPeriod: 2 * time.Second,
		Image: "example.com/foo:1", Workers: 4, MaxRetries: 15,
	}}))
	o, err = parse(t, "--foo-image=example.com/foo:2", "--leader-elect", "--implementation=managed", "--max-retries=0", "--leader-elect-lease-duration=1m")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.Image).To(Equal("example.com/foo:2"))
	g.Expect(o.LeaderElect).To(BeTrue())
	g.Expect(o.LeaseDuration).To(Equal(time.Minute))
	g.Expect(o.implementation).To(Equal("managed"))
	g.Expect(o.MaxRetries).To(BeZero())
}

func TestFlagsThatMakeNoSense(t *testing.T) {
	t.Setenv("RELATED_IMAGE_FOO", "")
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	missing := filepath.Join(t.TempDir(), "missing")
	for want, args := range map[string][]string{
		`there is no implementation "other": --implementation is raw or managed`: {"--foo-image=foo", "--implementation=other"},
		"no image for the pods: give --foo-image or set RELATED_IMAGE_FOO":       {},
		"--max-concurrent-reconciles is 0: at least 1 is needed":                 {"--foo-image=foo", "--max-concurrent-reconciles=0"},
		"--leader-elect-lease-duration is 14s, and has to be more than ":         {"--foo-image=foo", "--leader-elect-lease-duration=14s"},
		"--max-retries is -1: it must not be negative":                           {"--foo-image=foo", "--max-retries=-1"},
		"finding the cluster: stat " + missing:                                   {"--foo-image=foo", "--kubeconfig=" + missing},
		"finding the cluster: unable to load in-cluster configuration":           {"--foo-image=foo"},
	} {
		g := NewWithT(t)
		o, err := parse(t, args...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(run(o)).To(MatchError(HavePrefix(want)))
	}
}
