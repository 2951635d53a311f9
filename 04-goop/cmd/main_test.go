package main

import (
	"flag"
	"testing"

	. "github.com/onsi/gomega"
)

func TestLeaderElectionTimes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args     []string
		rejected string
	}{
		"defaults":                               {nil, ""},
		"shorter, in proportion":                 {[]string{"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=1s"}, ""},
		"kube-controller-manager's":              {[]string{"--leader-elect-renew-deadline=10s"}, "--leader-elect-lease-duration"},
		"a lease as long as the work without it": {[]string{"--leader-elect-lease-duration=14s"}, "--leader-elect-lease-duration"},
		"a value that is no part of its flag":    {[]string{"--leader-elect", "true", "--metrics-bind-address=0"}, `"true" is no flag`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var o managerOptions
			flags := flag.NewFlagSet("manager", flag.ContinueOnError)
			o.bindFlags(flags)
			g.Expect(flags.Parse(test.args)).To(Succeed())
			if test.rejected != "" {
				g.Expect(o.validate(flags.Args())).To(MatchError(ContainSubstring(test.rejected)))
			} else {
				g.Expect(o.validate(flags.Args())).To(Succeed())
			}
		})
	}
}
