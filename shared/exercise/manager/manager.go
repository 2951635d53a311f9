// Package manager runs the reader's operator in managers, for checks that start, stop and crash it. It is not part of package kube,
// whose users do not all wait for the linking of controller-runtime.
package manager

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// patience is how long a process may take to end.
const patience = 10 * time.Second

// Operator is an operator, and its processes.
type Operator struct {
	// Options are those of each manager. The scheme and the cache are the check's.
	Options ctrl.Options
	// Setup adds the controllers to the manager of a process.
	Setup func(ctrl.Manager, *Process) error
	// Access changes a process's access to the API server, if it is set.
	Access func(*rest.Config)
	// CrashWrite is the number of the write at which the first process crashes, if it is not 0, before it takes effect or after.
	// CrashOf is the resource whose writes are counted; all writes are if it is empty.
	CrashWrite int
	CrashAfter bool
	CrashOf    string
	// Crashed is set once a process has crashed, and been started again.
	Crashed bool
	// WhileDown happens between a crash and the next start, if it is set.
	WhileDown func()
	// Processes are those that run, the oldest first.
	Processes []*Process

	b *check.B

	mu   sync.Mutex
	hook func(kube.Request) error
}

// Process is one process of an operator.
type Process struct {
	*kube.Process
	Wire *kube.Wire

	b       *check.B
	cancel  context.CancelFunc
	stopped <-chan struct{}
}

// New returns an operator without processes.
func New(b *check.B, options ctrl.Options, setup func(ctrl.Manager, *Process) error) *Operator {
	return &Operator{b: b, Options: options, Setup: setup}
}

// Start starts a process.
func (o *Operator) Start() *Process {
	o.b.Event("the operator starts")
	ctrl.SetLogger(logr.Discard())
	p := &Process{Process: kube.NewProcess(o.b), Wire: kube.NewWire(o.b), b: o.b}
	if o.CrashWrite > 0 && !o.Crashed {
		p.CrashAt(o.CrashWrite, o.CrashAfter)
		p.CrashOf(o.CrashOf)
	}
	p.Wire.Before(func(request kube.Request, r *http.Request) (*http.Response, error) {
		if err := o.before(request); err != nil && !p.Dead() {
			return nil, err
		}
		return p.Before(request, r)
	})
	p.run(o.newManager(p))
	o.Processes = append(o.Processes, p)
	o.b.Cleanup(p.End)
	return p
}

func (o *Operator) newManager(p *Process) ctrl.Manager {
	access, options := p.Wire.Config(), o.Options
	if o.Access != nil {
		o.Access(access)
	}
	options.Metrics = server.Options{BindAddress: "0"}
	options.Logger = logr.Discard()
	options.Controller = config.Controller{SkipNameValidation: new(true)} // there are several managers
	// How long it takes to stop is not what is checked.
	options.GracefulShutdownTimeout = new(time.Duration(-1))
	mgr, err := ctrl.NewManager(access, options)
	if err != nil {
		o.b.Fatalf("making a manager: %v", err)
	}
	if err := o.Setup(mgr, p); err != nil {
		o.b.Fatalf("Setup returned an error: %v", err)
	}
	return mgr
}

// run starts the manager, which ends with the process, or when End is called.
func (p *Process) run(mgr ctrl.Manager) {
	ctx, cancel := context.WithCancel(p.b.Context())
	p.cancel = cancel
	p.stopped = p.b.Go(func() {
		err := p.Run(func(process context.Context) error { //nolint:contextcheck // it gives the function a context, which is joined with ctx
			both, end := context.WithCancel(process)
			defer end()
			defer context.AfterFunc(ctx, end)()
			return mgr.Start(both)
		})
		if err != nil && ctx.Err() == nil && !p.Crashed() {
			p.b.Errorf("the manager returned an error: %v", err)
		}
	})
}

// End stops a process, and waits for its end.
func (p *Process) End() {
	p.cancel()
	select {
	case <-p.stopped:
	case <-time.After(p.b.Patience(patience)):
		p.b.Errorf("the context of the manager has ended, and a call of Reconcile does not return")
	}
}

// Stop stops all processes.
func (o *Operator) Stop() {
	o.b.Event("the operator stops")
	for _, p := range o.Processes {
		p.End()
	}
	o.Processes = nil
}

// Restart stops all processes, and starts one.
func (o *Operator) Restart() *Process {
	o.Stop()
	return o.Start()
}

// Intercept has f called for each request of the operator, from now on. Its error is what comes of the request.
func (o *Operator) Intercept(f func(kube.Request) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hook = f
}

func (o *Operator) before(request kube.Request) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.hook == nil {
		return nil
	}
	return o.hook(request)
}

// Tend starts again what has crashed.
func (o *Operator) Tend() {
	for i, p := range o.Processes {
		if p.Crashed() {
			o.Crashed = true
			p.End()
			o.Processes = append(o.Processes[:i], o.Processes[i+1:]...)
			if o.WhileDown != nil {
				o.WhileDown()
			}
			o.Start()
			return
		}
	}
}
