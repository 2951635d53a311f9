package suite

import "errors"

// fault is what happens to one request of the operator, to the API server or to another service.
type fault int

const (
	none fault = iota
	// lost is a request that does not arrive. The operator gets an error, and goes on.
	lost
	// crashed is a request after which the operator crashes: it takes effect, and no later one is sent before the restart.
	crashed
)

// errLost is what the operator gets in place of a response.
var errLost = errors.New("the connection is lost, says the check")

// faults say which request has one.
type faults struct {
	// number counts down to the request with the fault.
	number int
	kind   fault
	// at is the request that had it; empty as long as none had.
	at   string
	down bool
}

// interrupt gives the fault to a request, the next one being number 1.
func (w *wire) interrupt(number int, kind fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = faults{number: number, kind: kind}
}

// interrupted is the request that had the fault; empty if none had.
func (w *wire) interrupted() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults.at
}

// crashed reports whether the operator is down.
func (w *wire) crashed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults.down
}

// fault is that of the next request.
func (w *wire) fault(request string) fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &w.faults
	if f.down {
		return lost
	}
	if f.number--; f.kind == none || f.number != 0 {
		return none
	}
	f.at, f.down = request, f.kind == crashed
	w.b.Event("  %s: %s", request, map[fault]string{lost: "it is lost", crashed: "the operator crashes after it"}[f.kind])
	return f.kind
}
