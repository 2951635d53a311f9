package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes"
)

// Bounds on what an operator may take.
const (
	readyTimeout = 60 * time.Second
	stopTimeout  = 30 * time.Second
	// crashTimeout is more than readyTimeout: the kubelet pauses before it starts a container that ended
	// again, 10 seconds, then twice as long each time.
	crashTimeout = 3 * time.Minute
	// leaderTimeout is enough for the lease of a killed leader to run out.
	leaderTimeout = 60 * time.Second
)

// Process is an operator that runs as a local process, or as several: one for each replica.
type Process struct {
	options  Options
	manifest *manifest
	binary   string
	help     string
	// kubeconfig and records name files of the first replica; further ones have the number appended.
	kubeconfig string
	records    string
	// login gets a token for a process, writes a kubeconfig with it and returns the token's id.
	login    func(ctx context.Context, kubeconfig string) (credential string, err error)
	replicas []*replica
	// webhookPort is where the first replica converts objects, if the configuration has a CRD for that; else 0.
	webhookPort int
	// scaleBack is there if a Deployment of the operator was scaled to 0.
	scaleBack func(context.Context) error
}

var _ Operator = &Process{}

// User is that of the ServiceAccount whose tokens the processes have.
func (p *Process) User() string { return p.manifest.user() }

// Namespace is the one that the manifest deploys the operator to.
func (p *Process) Namespace() string { return p.manifest.deployment.Namespace }

// ServiceAccount is the one that the manifest names.
func (p *Process) ServiceAccount() string { return p.manifest.serviceAccount() }

// Pid is that of the first replica's present process.
func (p *Process) Pid() int { return p.replicas[0].cmd.Process.Pid }

// Ended is closed when the first replica's present process has ended, for whatever reason.
func (p *Process) Ended() <-chan struct{} { return p.replicas[0].ended }

// arguments are the manifest's, then what a process next to others needs: addresses of its own, and
// the namespace that a pod would read from its mounted token.
func (p *Process) arguments(r *replica) []string {
	args := append([]string{}, p.manifest.container.Args...)
	type flag struct{ name, value string }
	flags := []flag{
		{"kubeconfig", r.kubeconfig},
		{"metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", r.metricsPort)},
		{"health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", r.probePort)},
		{"leader-election-namespace", p.Namespace()},
	}
	if p.webhookPort != 0 {
		flags = append(flags, flag{webhookFlag, fmt.Sprintf("127.0.0.1:%d", r.webhookPort)})
	}
	for _, f := range flags {
		if p.has(f.name) {
			args = append(args, "--"+f.name+"="+f.value)
		}
	}
	return append(args, p.options.Args...)
}

// has reports whether the operator has a flag: flags are given only to operators that have them.
func (p *Process) has(flag string) bool { return strings.Contains(p.help, "-"+flag) }

// Start starts the replicas that do not run and waits until their readiness probes say yes.
func (p *Process) Start(ctx context.Context) error {
	if len(p.replicas) == 0 {
		p.resize(1)
	}
	for _, r := range p.replicas {
		if r.running() {
			continue
		}
		if err := p.start(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// start gives a replica what each new process needs afresh, and starts it.
func (p *Process) start(ctx context.Context, r *replica) error {
	ports, err := freePorts(ctx, 4)
	if err != nil {
		return err
	}
	// That of the CRD is free, too, while its replica does not run.
	ports = slices.DeleteFunc(ports, func(port int) bool { return port == p.webhookPort })
	r.metricsPort, r.probePort, r.webhookPort = ports[0], ports[1], ports[2]
	if r.number == 1 {
		if err := p.checkWebhookPort(ctx); err != nil {
			return err
		}
		r.webhookPort = p.webhookPort
	}
	if r.credential, err = p.login(ctx, r.kubeconfig); err != nil {
		return err
	}
	env, err := p.manifest.environment(r.number)
	if err != nil {
		return err
	}
	return r.start(ctx, p.arguments(r), env, p.options.Output)
}

// resize makes the list of replicas longer or shorter. Those that it drops must have ended.
func (p *Process) resize(n int) {
	p.replicas = p.replicas[:min(n, len(p.replicas))]
	for number := len(p.replicas) + 1; number <= n; number++ {
		r := &replica{number: number, binary: p.binary, log: p.options.Log, kubeconfig: p.kubeconfig}
		if number > 1 {
			extension := filepath.Ext(r.log)
			r.log = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(r.log, extension), number, extension)
			r.kubeconfig = fmt.Sprintf("%s.%d", r.kubeconfig, number) // with a dash it might be that of a cluster name-2
		}
		r.record = filepath.Join(p.records, fmt.Sprintf("%d.json", number))
		p.replicas = append(p.replicas, r)
	}
}

// Scale ends the replicas that are too many, in order, and starts those that are missing. Each has
// ports, a token and a log of its own: operator.log, operator-2.log.
func (p *Process) Scale(ctx context.Context, replicas int) error {
	if replicas < 1 {
		return fmt.Errorf("scaling the operator to %d: use Stop", replicas)
	}
	if replicas < len(p.replicas) {
		if err := end(ctx, p.replicas[replicas:], syscall.SIGTERM); err != nil {
			return err
		}
	}
	p.resize(replicas)
	return p.Start(ctx)
}

// Stop asks the processes to end, and kills those that take too long.
func (p *Process) Stop(ctx context.Context) error {
	return end(ctx, p.replicas, syscall.SIGTERM)
}

// end ends replicas, all at once.
func end(ctx context.Context, replicas []*replica, signal syscall.Signal) error {
	errs := make([]error, len(replicas))
	var all sync.WaitGroup
	for i, r := range replicas {
		all.Go(func() { errs[i] = r.end(ctx, signal) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Restart ends the processes in order and starts others.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Kill kills the processes and starts others.
func (p *Process) Kill(ctx context.Context) error {
	if err := end(ctx, p.replicas, syscall.SIGKILL); err != nil {
		return err
	}
	return p.Start(ctx)
}

// KillLeader kills the process that wrote the lease last, and starts another.
func (p *Process) KillLeader(ctx context.Context) (string, error) {
	cfg, err := p.options.Cluster.RESTConfig()
	if err != nil {
		return "", err
	}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return "", fmt.Errorf("making a client: %w", err)
	}
	var leader *replica
	identity, err := waitLeader(ctx, clients, p.Namespace(), func(ctx context.Context, lease *coordinationv1.Lease) (bool, error) {
		leader, err = p.holder(ctx, lease)
		return leader != nil, err
	})
	if err != nil {
		return "", err
	}
	if err := leader.end(ctx, syscall.SIGKILL); err != nil {
		return "", err
	}
	return identity, p.start(ctx, leader)
}

// Logs are the whole log files, all runs of this suite. Those of several replicas have a line with
// their name before them.
func (p *Process) Logs(context.Context) (string, error) {
	var all strings.Builder
	for _, r := range p.replicas {
		text, err := os.ReadFile(r.log)
		if err != nil {
			return all.String(), fmt.Errorf("reading the operator's log: %w", err)
		}
		if len(p.replicas) > 1 {
			fmt.Fprintf(&all, "==> %s <==\n", filepath.Base(r.log))
		}
		all.Write(text)
	}
	return all.String(), nil
}

// Metrics asks the first replica directly.
func (p *Process) Metrics(ctx context.Context, token string) (int, string, error) {
	return getMetrics(ctx, p.replicas[0].metricsPort, token)
}
