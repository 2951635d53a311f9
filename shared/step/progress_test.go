package step

import (
	"strings"
	"testing"
	"time"
)

// The builder is read without a lock: nothing may be printed once stop has returned.
func TestProgressPrintsUntilItIsStopped(t *testing.T) {
	usual := interval
	interval = time.Millisecond
	defer func() { interval = usual }()
	var out strings.Builder
	asked := make(chan struct{}, 1000)
	stop := Progress(&out, func() string {
		asked <- struct{}{}
		return "1 of 2"
	})
	<-asked
	<-asked
	stop()
	if text := out.String(); !strings.HasPrefix(text, "    1 of 2\n    1 of 2\n") {
		t.Errorf("got %q", text)
	}
}
