// Package broker implements `flux broker` of the stand-in: one process for each rank. Rank 0 is the leader.
package broker

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"example.com/workbook/03-flux/test/standin/internal/config"
	"example.com/workbook/03-flux/test/standin/internal/curve"
	"example.com/workbook/03-flux/test/standin/internal/options"
	"example.com/workbook/03-flux/test/standin/internal/words"
)

// notice is the first line that a broker prints.
const notice = "flux: this is a stand-in for tests, and no Flux"

// exitRejected is the exit code of a broker that does not start.
const exitRejected = 1

// broker is what leader and follower have in common.
type broker struct {
	log     *logger
	options *options.Options
	config  *config.Config
	cert    *curve.Certificate // nil for a single broker without one
	socket  string
	now     func() time.Time
	// events are handled one by one by the goroutine that called Run: the code that they call needs no locks.
	events chan func()
	// cleanup removes the files and directories that the broker created.
	cleanup []func()
}

// Run runs a broker, whose arguments follow `flux broker`. It returns the exit code.
func Run(args []string, stderr io.Writer, now func() time.Time) int {
	fmt.Fprintln(stderr, notice)
	// This is first, so that no early signal is lost.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)

	o, err := options.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "flux-broker: %v\n", err)
		return exitRejected
	}
	b := &broker{
		log:     &logger{out: stderr, now: now, options: o.Log, host: o.Hostname, rank: -1},
		options: o, now: now, events: make(chan func(), 16),
	}
	defer func() {
		for _, clean := range b.cleanup {
			clean()
		}
	}()
	if b.config, err = config.Read(o.ConfigPath, o.Hostname); err != nil {
		b.log.printf(crit, "broker", "%v", err)
		return exitRejected
	}
	b.log.rank = b.config.Rank
	if b.config.Rank == 0 {
		return b.lead(signals)
	}
	return b.follow(signals)
}

func (b *broker) size() int { return len(b.config.Hosts) }

// prepare does what every rank does before it connects to others. It logs its error.
func (b *broker) prepare() (options.Timing, error) {
	timing, err := b.setUp()
	if err != nil {
		b.log.printf(crit, "broker", "%v", err)
		return timing, err
	}
	if b.config.Certificate == "" {
		return timing, nil
	}
	if b.cert, err = curve.Load(b.config.Certificate); err != nil {
		b.log.printf(fail, "overlay", "Error loading certificate: %v", err)
		b.log.printf(crit, "overlay", "module exiting abnormally")
		return timing, err
	}
	return timing, nil
}

func (b *broker) setUp() (timing options.Timing, err error) {
	if err := b.makeDirectories(); err != nil {
		return timing, err
	}
	if timing, err = b.options.Timing(b.size()); err != nil {
		return timing, err
	}
	if b.config.ConnectTimeout, err = b.options.ConnectTimeout(b.config.ConnectTimeout); err != nil {
		return timing, err
	}
	var all []int
	for rank := range b.size() {
		all = append(all, rank)
	}
	maps.Copy(b.options.Attributes, map[string]string{
		"rank":       strconv.Itoa(b.config.Rank),
		"size":       strconv.Itoa(b.size()),
		"hostlist":   b.hosts(all...),
		"version":    "0.0.0-standin",
		"broker.pid": strconv.Itoa(os.Getpid()),
	})
	return timing, nil
}

// post lets f be called as an event. It must not be called from an event, because it would wait for itself.
func (b *broker) post(f func()) { b.events <- f }

// cores is the number of cores that a rank has declared, or else that of its machine.
func (b *broker) cores(rank int) int {
	if b.config.Cores == nil {
		return runtime.NumCPU()
	}
	return b.config.Cores[rank]
}

// names formats ranks as a broker does: demo-[1-2] (rank 1-2).
func (b *broker) names(ranks ...int) string {
	return fmt.Sprintf("%s (rank %s)", b.hosts(ranks...), config.JoinIDs(ranks))
}

// hosts formats the hosts of ranks: demo-[1-2].
func (b *broker) hosts(ranks ...int) string {
	var hosts []string
	for _, rank := range ranks {
		hosts = append(hosts, b.config.Hosts[rank].Name)
	}
	return config.JoinHosts(hosts)
}

// address returns the address on which rank 0 listens, or to which the others connect.
func (b *broker) address(kind, uri string) (string, error) {
	if uri == "" {
		return "", words.Errorf("%s URI is undefined for rank 0", kind)
	}
	return config.Address(uri)
}

// environment is the environment of the initial program: the broker's own, without the variables of another job.
func (b *broker) environment() []string {
	var env []string
	for _, entry := range os.Environ() {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case "FLUX_URI", "FLUX_JOB_ID", "FLUX_JOB_SIZE", "FLUX_JOB_NNODES", "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID":
		default:
			env = append(env, entry)
		}
	}
	return append(env, "FLUX_URI="+b.options.Attributes["local-uri"])
}
