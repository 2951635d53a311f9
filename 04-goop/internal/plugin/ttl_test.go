package plugin

import (
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// A program that is killed deletes nothing. The TTL deletes the workers some time after their end.
func TestRunSetsATTL(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
		want  *int32
	}{
		{"by default", nil, new(int32(3600))},
		{"as it was asked for", []string{"--ttl", "1500ms"}, new(int32(2))},
		{"none with 0", []string{"--ttl", "0"}, nil},
		{"none of a Goop that is kept, for its logs", []string{"--keep"}, nil},
		{"of a Goop that is kept, if asked for", []string{"--keep", "--ttl", "24h"}, new(int32(86400))},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			created := make(chan *v1alpha1.Goop, 1)
			f.creates(func(goop *v1alpha1.Goop) {
				created <- goop
				f.end(goop.Name, 0)
			})
			r := f.run(append(append([]string{"run"}, c.flags...), "--", "true")...)
			g.Expect(r.code).To(Equal(0), r.err)
			g.Expect((<-created).Spec.TTLSecondsAfterFinished).To(Equal(c.want))
		})
	}
}
