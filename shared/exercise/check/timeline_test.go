package check

import (
	"fmt"
	"slices"
	"testing"
)

func TestTimeline(t *testing.T) {
	t.Parallel()
	for _, count := range []int{0, 1, 100, 200, 201, 250, 300, 512} {
		var line timeline
		var want []string
		for i := range count {
			text := fmt.Sprintf("line %d", i)
			line.add(text)
			switch left := count - 200; {
			case i < 100 || i >= count-100:
				want = append(want, text)
			case i == 100 && left > 0:
				want = append(want, fmt.Sprintf("… %d lines …", left))
			}
		}
		if got := line.lines(); !slices.Equal(got, want) {
			t.Errorf("of %d lines, these are kept: %q", count, got)
		}
	}
}

func TestTimelineOfABehaviour(t *testing.T) {
	t.Parallel()
	var lines []Line
	check := &T{ctx: t.Context(), report: func(line Line) { lines = append(lines, line) }}
	check.Behaviour("it ends", func(b *B) {
		for i := range 1000 {
			b.Event("line %d", i)
		}
		b.Fatalf("it does not")
	})
	kept := lines[len(lines)-1].Timeline
	if len(kept) != 201 || kept[0] != "line 0" || kept[100] != "… 800 lines …" || kept[200] != "line 999" {
		t.Errorf("the timeline is %q", kept)
	}
}
