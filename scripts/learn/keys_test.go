package main

import "testing"

func TestScreenGoesOnFromItsOwnExercise(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	d := newDesk(t, r)
	d.until("✗ a lost event is repaired")
	d.idle()
	d.press("n")
	d.until("04b second")
	d.idle()
	typed(t, r, "run", "04a") // beside the screen
	save(t, r.exercises[1], solutionText)
	d.until("n goes on to 05a")
	d.press("n")
	d.until("05a third")
	d.idle()
	save(t, r.exercises[2], solutionText)
	d.until("n goes on to 04a")
}
