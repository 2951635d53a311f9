package check

import "testing"

// A panic is reported with what was begun last.
func TestTheEndOfTheContextIsNotTheBehaviour(t *testing.T) {
	t.Parallel()
	begun, during := "", ""
	check := &T{ctx: t.Context(), report: func(line Line) {
		if line.Begin != "" {
			begun = line.Begin
		}
	}}
	check.Behaviour("it is there", func(b *B) {
		during = begun
		b.Cleanup(func() { during += "; " + begun })
	})
	if want := "it is there; the end of the context, after: it is there"; during != want {
		t.Errorf("%q was begun, expected %q", during, want)
	}
}
