package worker

import (
	"sync"
	"unicode/utf8"
)

// tail keeps the end of what several writers write to it concurrently.
type tail struct {
	mu   sync.Mutex
	kept []byte
	cut  bool
}

func (t *tail) add(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-MaxOutput):]...)
	if excess := len(t.kept) - MaxOutput; excess > 0 || len(p) > MaxOutput {
		t.kept = append(t.kept[:0], t.kept[max(0, excess):]...)
		t.cut = true
	}
}

// String returns what was kept, as valid UTF-8, without a character whose beginning was cut off.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.kept
	if t.cut {
		for i := 0; i < utf8.UTFMax-1 && len(kept) > 0 && !utf8.RuneStart(kept[0]); i++ {
			kept = kept[1:]
		}
	}
	return clip(kept)
}
