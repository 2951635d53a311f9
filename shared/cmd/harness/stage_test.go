package main

import "testing"

func TestWhatToTypeForATarget(t *testing.T) {
	for dir, want := range map[string]string{
		"/src/07-kettle": "make stage-7 run",
		"/src/kettle":    "make run",
		"/src/07/kettle": "make run",
	} {
		s := &stage{dir: dir}
		if got := s.makes("run"); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}
