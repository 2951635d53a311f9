package plugin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"example.com/workbook/04-goop/api/v1alpha1"
)

const runHelp = `Run a command on nodes, show what it writes, and exit as it did.

Each worker is a container on its node. Lines of output begin with the node's
name, or with NODE/ROUND where nodes have several workers. The command is not
run in a shell. To use one, run sh -c.

The Goop, and with it all that was made for it, is removed at the end. Ctrl-C
and --timeout cancel the work: they remove the Goop as well, which ends the
workers; with --keep they suspend it. A second Ctrl-C leaves at once.

If this program is killed, by SIGKILL say, it removes nothing: the work continues
to its end, or until --timeout has expired, and the workers are deleted --ttl
later. The Goop stays: kubectl goop ls shows it, kubectl goop cancel removes it.

`

const runExamples = `  # The kernel of every node
  kubectl goop run -- uname -r

  # The same, with nodes that gave the same output grouped
  kubectl goop run --group -- uname -r

  # A file of every amd64 node, including control-plane nodes, with a timeout of one minute
  kubectl goop run --nodes kubernetes.io/arch=amd64 --tolerate-all --host-root ro --timeout 1m -- cat /host/etc/os-release

  # Ten workers, spread over the nodes
  kubectl goop run --count 10 -- sh -c 'echo $GOOP_ROUND on $NODE_NAME'

  # The nodes on which a command failed
  kubectl goop run -o json -- test -e /etc/passwd | jq -r 'select(.type=="worker" and .exitCode!=0).node'`

// deadlineSlack is how much longer the Goop's own deadline is than --timeout. The deadline ends the work if this program
// is killed. Otherwise --timeout comes first, so that this program reports the end.
const deadlineSlack = 15 * time.Second

// defaultTTL is how long the workers stay after their end if this program was killed before it deleted the Goop. It also
// limits how long the reader of the output may pause, because the log is deleted with the pod.
const defaultTTL = time.Hour

// runFlags are the flags of run.
type runFlags struct {
	outputFlags
	nodes, image, hostRoot string
	count, retries         int32
	timeout, ttl           time.Duration
	tolerateAll, keep      bool
}

func (a *app) runCommand() *cobra.Command {
	r := &runFlags{}
	command := &cobra.Command{
		Use:     "run [flags] -- COMMAND [ARGUMENT...]",
		Short:   "Run a command on nodes, show what it writes, and exit as it did",
		Long:    runHelp + exitHelp,
		Example: runExamples,
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(command *cobra.Command, args []string) error {
			if r.keep && !command.Flags().Changed("ttl") {
				r.ttl = 0
			}
			if err := r.checkGiven(command.Flags()); err != nil {
				return usageError{err}
			}
			goop, err := r.goop(args)
			if err != nil {
				return usageError{err}
			}
			if err := r.check(); err != nil {
				return err
			}
			return a.run(command.Context(), r, goop)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := command.Flags()
	// The flags after the command belong to the command.
	flags.SetInterspersed(false)
	flags.StringVar(&r.nodes, "nodes", "", "labels of the nodes to run on, as KEY=VALUE,…; all, if unset")
	flags.Int32Var(&r.count, "count", 0, "how many workers to spread over the nodes; one on each, if unset")
	flags.StringVar(&r.image, "image", "", "container image to run in; busybox, if unset")
	flags.DurationVar(&r.timeout, "timeout", 0, "cancel the work after this time, as 90s or 1h30m; never, if unset")
	flags.DurationVar(&r.ttl, "ttl", defaultTTL,
		"how long the workers and their logs are kept after the end of the work, with --keep or if this program was killed; "+
			"0 keeps them until the Goop is deleted, which is the default with --keep")
	flags.StringVar(&r.hostRoot, "host-root", "", "the node's files at /host: ro or rw; the operator must allow it")
	flags.Int32Var(&r.retries, "retries", 0, "how often a worker is retried that does not exit with 0")
	flags.BoolVar(&r.tolerateAll, "tolerate-all", false,
		"run also on tainted nodes, such as those of the control plane")
	flags.BoolVar(&r.keep, "keep", false, "do not remove the Goop at the end: its logs stay to be read")
	r.add(command)
	fixed(command, "host-root", "ro", "rw")
	return command
}

// checkGiven rejects flags that are set explicitly to the value of an unset flag: a script with an empty variable must
// not run its command on all nodes.
func (r *runFlags) checkGiven(flags *pflag.FlagSet) error {
	switch {
	case flags.Changed("count") && r.count == 0:
		return fmt.Errorf("--count: must be at least 1; without it there is a worker on each node")
	case flags.Changed("nodes") && r.nodes == "":
		return fmt.Errorf("--nodes: must not be empty; without it the command runs on all nodes")
	}
	return nil
}

// nodeSelector returns the node selector of --nodes.
func nodeSelector(text string) (map[string]string, error) {
	selector, err := labels.ConvertSelectorToLabelsMap(text)
	if err != nil {
		return nil, fmt.Errorf("--nodes: must be KEY=VALUE, or several with commas between: %w", err)
	}
	given := map[string]bool{}
	for pair := range strings.SplitSeq(text, ",") {
		key, _, _ := strings.Cut(pair, "=")
		if key = strings.TrimSpace(key); given[key] {
			return nil, fmt.Errorf("--nodes: %s is given twice; a node has one value of each label", key)
		}
		given[key] = true
	}
	return selector, nil
}

// checkCommand rejects commands that a Goop cannot represent. JSON replaces bytes that are not UTF-8, so the command
// would change.
func checkCommand(cmd []string) error {
	if cmd[0] == "" {
		return fmt.Errorf("the command is empty: name a program after --")
	}
	for _, argument := range cmd {
		if !utf8.ValidString(argument) {
			return fmt.Errorf("%q is not valid UTF-8: a Goop would contain another argument", argument)
		}
	}
	return nil
}

// goop returns the Goop that the flags describe.
func (r *runFlags) goop(cmd []string) (*v1alpha1.Goop, error) {
	if err := checkCommand(cmd); err != nil {
		return nil, err
	}
	goop := &v1alpha1.Goop{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Goop"},
		ObjectMeta: metav1.ObjectMeta{Name: newName()},
		Spec:       v1alpha1.GoopSpec{Cmd: cmd, Image: r.image, Retries: &r.retries},
	}
	spec := &goop.Spec
	if r.nodes != "" {
		selector, err := nodeSelector(r.nodes)
		if err != nil {
			return nil, err
		}
		spec.NodeSelector = selector
	}
	switch {
	case r.count < 0:
		return nil, fmt.Errorf("--count: must not be negative")
	case r.count > 0:
		spec.JobCount = &r.count
	}
	if r.retries < 0 {
		return nil, fmt.Errorf("--retries: must not be negative")
	}
	switch r.hostRoot {
	case "":
	case "ro":
		spec.Host = &v1alpha1.HostAccess{Root: v1alpha1.HostRootReadOnly}
	case "rw":
		spec.Host = &v1alpha1.HostAccess{Root: v1alpha1.HostRootReadWrite}
	default:
		return nil, fmt.Errorf("--host-root: must be ro or rw")
	}
	if r.tolerateAll {
		spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	return goop, r.limitTimes(spec)
}

// limitTimes sets the deadline and the TTL.
func (r *runFlags) limitTimes(spec *v1alpha1.GoopSpec) error {
	switch {
	case r.timeout < 0:
		return fmt.Errorf("--timeout: must not be negative")
	case r.ttl < 0:
		return fmt.Errorf("--ttl: must not be negative")
	}
	// Times that exceed the limits of the API are the same as none.
	if seconds := math.Ceil(r.timeout.Seconds() + deadlineSlack.Seconds()); r.timeout > 0 && seconds <= math.MaxInt32 {
		spec.ActiveDeadlineSeconds = new(int64(seconds))
	}
	if seconds := math.Ceil(r.ttl.Seconds()); r.ttl > 0 && seconds <= math.MaxInt32 {
		spec.TTLSecondsAfterFinished = new(int32(seconds))
	}
	return nil
}

// run creates the Goop, follows it, and deletes it.
func (a *app) run(ctx context.Context, r *runFlags, goop *v1alpha1.Goop) error {
	api, err := a.connect()
	if err != nil {
		return err
	}
	ctx, stopTimeout := withTimeout(ctx, r.timeout)
	defer stopTimeout()
	cancelHint := a.hint(api, "cancel", goop.Name)
	a.left.Store(new(fmt.Sprintf("the Goop %s may still be there: %s", goop.Name, cancelHint)))
	created, err := a.create(ctx, api, goop)
	if err != nil {
		a.left.Store(nil)
	}
	switch why := context.Cause(ctx); {
	case err != nil && errors.Is(err, why):
		s := newSession(a, api, goop)
		r.use(s, a.console)
		return a.conclude(s, why, "no Goop was created", r.timeout)
	case err != nil:
		return fmt.Errorf("creating the Goop: %w", explained(err))
	}
	if r.keep {
		a.console.say("the Goop %s is created and will be kept: %s", created.Name, a.hint(api, "logs", created.Name))
	}
	s := newSession(a, api, created)
	s.toTheEnd, s.stopTimeout = true, stopTimeout
	r.use(s, a.console)
	var did string
	why := a.follow(ctx, s, func(why error) {
		if did, err = a.end(ctx, r, api, created, why); err == nil {
			a.left.Store(nil)
		}
	})
	code := a.conclude(s, why, did, r.timeout)
	if err != nil {
		a.console.fail("%v; it may still be there: %s", err, cancelHint)
		if code == nil {
			return exitError(exitFailed)
		}
	}
	return code
}

// withTimeout returns a context that is cancelled after a time; 0: never. stopTimeout prevents that if it is called earlier.
func withTimeout(ctx context.Context, after time.Duration) (limited context.Context, stopTimeout func()) {
	if after == 0 {
		return ctx, func() {}
	}
	timed, stop := context.WithTimeoutCause(ctx, after, errTimedOut)
	limited, end := context.WithCancelCause(ctx)
	expire := func() { end(context.Cause(timed)) }
	disarm := context.AfterFunc(timed, expire)
	// AfterFunc runs expire in a goroutine. If the timeout has expired already, cancel here, so that no request is sent.
	if timed.Err() != nil {
		expire()
	}
	return limited, func() { disarm(); stop() }
}
