package image

import "testing"

func TestWhatAStageWouldPull(t *testing.T) {
	calls := fakeEngine(t)
	dir := withBusybox(t, "no-such-program")
	pulled, err := ToPull(t.Context(), dir)
	if err != nil || len(pulled) != 1 {
		t.Fatalf("got %v, %v", pulled, err)
	}
	got := pulled[0].Ref + ": " + pulled[0].Why.Error() + ": " + pulled[0].Install
	const want = "busybox:1.37: there is no program for the image: this machine has no no-such-program: " +
		"have a static busybox in PATH (on Debian and Ubuntu that of `apt-get install busybox-static`)"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	toEngine(t, calls, "pulled")
	if pulled, err := ToPull(t.Context(), dir); err != nil || len(pulled) != 0 {
		t.Errorf("the engine has it: got %v, %v", pulled, err)
	}
	if pulled, err := ToPull(t.Context(), newStage(t)); err != nil || len(pulled) != 0 {
		t.Errorf("all programs are the stage's own: got %v, %v", pulled, err)
	}
}
