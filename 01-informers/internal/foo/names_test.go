package foo

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestIdentityIsNewForEachRun(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	one, err := NewIdentity()
	g.Expect(err).NotTo(HaveOccurred())
	two, err := NewIdentity()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(one).NotTo(Equal(two))
	g.Expect(UserAgent("raw", one)).To(Equal("foo-controller/raw (" + one + ")"))
}
