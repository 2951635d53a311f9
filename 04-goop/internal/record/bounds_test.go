package record

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Read rejects what a status has no room for.
func TestReadRejectsWhatAStatusCannotHold(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 253)
	for name, test := range map[string]struct{ line, want string }{
		"the longest node":                   {"f " + long + " 0 1 1", ""},
		"a node that is longer":              {"f " + long + "n 0 1 1", "the second field is to be the name of a node"},
		"begun on a node that is longer":     {"b " + long + "n", "the second field is to be the name of a node"},
		"a cleanup of a node that is longer": {"c " + long + "n 0 1", "the second field is to be the name of a node"},
		"the last year":                      {"s 9999-12-31T23:59:59Z", ""},
		"a year after the last":              {"s 9999-12-31T23:59:59-00:01", "after s comes a time as in 2026-01-02T15:04:05Z, or -"},
		"the first year":                     {"s 0001-01-01T00:00:01Z", ""},
		"a year before the first":            {"s 0001-01-01T00:00:00+00:01", "after s comes a time as in 2026-01-02T15:04:05Z, or -"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(map[int]string{0: test.line + "\n"}, 1)
			if test.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(HaveSuffix(test.want)))
		})
	}
}

// A record can have as many workers as a Goop, but no more than a status can count.
func TestReadBoundsTheCounts(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var text strings.Builder
	for i := range maxFinished {
		fmt.Fprintf(&text, "f n%d %d 0 1\n", i/v1alpha1.MaxRounds, i%v1alpha1.MaxRounds)
	}
	r, err := Read(map[int]string{0: text.String()}, 1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Succeeded).To(BeEquivalentTo(maxFinished))
	_, err = Read(map[int]string{0: text.String() + "f n0 0 0 1\n"}, 1)
	g.Expect(err).NotTo(HaveOccurred(), "it is the same worker")
	_, err = Read(map[int]string{0: text.String() + "f other 0 0 1\n"}, 1)
	g.Expect(err).To(MatchError(HaveSuffix("there are more workers than a Goop can have")))
}
