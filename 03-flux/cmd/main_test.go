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
		rejected bool
	}{
		"defaults":                               {nil, false},
		"shorter, in proportion":                 {[]string{"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=1s"}, false},
		"kube-controller-manager's":              {[]string{"--leader-elect-renew-deadline=10s"}, true},
		"a lease as long as the work without it": {[]string{"--leader-elect-lease-duration=14s"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var o managerOptions
			flags := flag.NewFlagSet("manager", flag.ContinueOnError)
			o.bindFlags(flags)
			g.Expect(flags.Parse(test.args)).To(Succeed())
			if test.rejected {
				g.Expect(o.validate()).To(MatchError(ContainSubstring("--leader-elect-lease-duration")))
			} else {
				g.Expect(o.validate()).To(Succeed())
			}
		})
	}
}
