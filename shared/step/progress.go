package step

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// interval is how often Progress prints.
var interval = 15 * time.Second

// Progress prints at intervals how far a long operation has got, until stop is called.
func Progress(out io.Writer, how func() string) (stop func()) {
	done := make(chan struct{})
	var printing sync.WaitGroup
	printing.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				fmt.Fprintf(out, "    %s\n", how())
			}
		}
	})
	return func() { close(done); printing.Wait() }
}
