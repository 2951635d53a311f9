package plugin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/04-goop/api/v1alpha1"
)

const runHelp = `Run a command on nodes, show what it writes, and exit as it did.

Each worker is a container on its node. Lines of output begin with the node's
name, or with NODE/ROUND where nodes have several workers. No shell sees the
command: for one, run sh -c.

The Goop, and with it all that was made for it, is removed at the end. Ctrl-C
and --timeout cancel the work: they remove the Goop as well, which ends the
workers; with --keep they suspend it. A second Ctrl-C leaves at once.

If this program is killed, by SIGKILL say, it removes nothing: the work goes on
to its end, or until --timeout is over, and the workers go --ttl after that. The
Goop stays: kubectl goop ls shows it, kubectl goop cancel removes it.

`

const runExamples = `  # The kernel of every node
  kubectl goop run -- uname -r

  # The same, with nodes that gave the same answer together
  kubectl goop run --group -- uname -r

  # A file of the nodes of one kind, the control plane's among them, within a minute
  kubectl goop run --nodes kubernetes.io/arch=amd64 --tolerate-all --host-root ro --timeout 1m -- cat /host/etc/os-release

  # Ten workers, spread over the nodes
  kubectl goop run --count 10 -- sh -c 'echo $GOOP_ROUND on $NODE_NAME'

  # The nodes on which a command failed
  kubectl goop run -o json -- test -e /etc/passwd | jq -r 'select(.type=="worker" and .exitCode!=0).node'`

// deadlineSlack is how much later than --timeout the Goop's own deadline is. That one is for when this program is
// killed: the work ends all the same. If this program lives it is to be the one that says what happened.
const deadlineSlack = 15 * time.Second

// defaultTTL is how long the workers stay after their end where this program was killed before it removed the Goop. It
// is also how long somebody who reads the output may pause: with its pod a log is gone.
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
	// What follows the command is the command's.
	flags.SetInterspersed(false)
	flags.StringVar(&r.nodes, "nodes", "", "labels of the nodes to run on, as KEY=VALUE,…; all, if unset")
	flags.Int32Var(&r.count, "count", 0, "how many workers to spread over the nodes; one on each, if unset")
	flags.StringVar(&r.image, "image", "", "container image to run in; busybox, if unset")
	flags.DurationVar(&r.timeout, "timeout", 0, "cancel the work after this time, as 90s or 1h30m; never, if unset")
	flags.DurationVar(&r.ttl, "ttl", defaultTTL,
		"how long workers and their logs stay after the end if this program was killed; 0, or --keep without it: until the Goop is deleted")
	flags.StringVar(&r.hostRoot, "host-root", "", "the node's files at /host: ro or rw; the operator must allow it")
	flags.Int32Var(&r.retries, "retries", 0, "how often a worker tries again that does not end with 0")
	flags.BoolVar(&r.tolerateAll, "tolerate-all", false,
		"run also on nodes with taints that keep others away, as the control plane's")
	flags.BoolVar(&r.keep, "keep", false, "do not remove the Goop at the end: its logs stay to be read")
	r.add(command)
	fixed(command, "host-root", "ro", "rw")
	return command
}

// goop is the one that the flags ask for.
func (r *runFlags) goop(cmd []string) (*v1alpha1.Goop, error) {
	goop := &v1alpha1.Goop{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Goop"},
		ObjectMeta: metav1.ObjectMeta{Name: newName()},
		Spec:       v1alpha1.GoopSpec{Cmd: cmd, Image: r.image, Retries: &r.retries},
	}
	spec := &goop.Spec
	if r.nodes != "" {
		selector, err := labels.ConvertSelectorToLabelsMap(r.nodes)
		if err != nil {
			return nil, fmt.Errorf("--nodes: must be KEY=VALUE, or several with commas between: %w", err)
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

// limitTimes sets how long the work may take and its workers stay.
func (r *runFlags) limitTimes(spec *v1alpha1.GoopSpec) error {
	switch {
	case r.timeout < 0:
		return fmt.Errorf("--timeout: must not be negative")
	case r.ttl < 0:
		return fmt.Errorf("--ttl: must not be negative")
	}
	// Longer times than the API has are as good as none.
	if seconds := math.Ceil((r.timeout + deadlineSlack).Seconds()); r.timeout > 0 && seconds <= math.MaxInt32 {
		spec.ActiveDeadlineSeconds = new(int64(seconds))
	}
	if seconds := math.Ceil(r.ttl.Seconds()); r.ttl > 0 && seconds <= math.MaxInt32 {
		spec.TTLSecondsAfterFinished = new(int32(seconds))
	}
	return nil
}

// run creates the Goop, follows it, and removes it.
func (a *app) run(ctx context.Context, r *runFlags, goop *v1alpha1.Goop) error {
	api, err := a.connect()
	if err != nil {
		return err
	}
	if r.timeout > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, r.timeout, errTimedOut)
		defer done()
	}
	cancelIt := a.hint(api, "cancel", goop.Name)
	a.left.Store(new(fmt.Sprintf("the Goop %s may still be there: %s", goop.Name, cancelIt)))
	created, err := a.create(ctx, api, goop)
	if err != nil {
		a.left.Store(nil)
		return fmt.Errorf("creating the Goop: %w", explained(err))
	}
	if r.keep {
		a.console.say("the Goop %s is created and will be kept: %s", created.Name, a.hint(api, "logs", created.Name))
	}
	s := newSession(a, api, created)
	s.toTheEnd = true
	r.use(s, a.console)
	var did string
	why := a.follow(ctx, s, func(why error) {
		if did, err = r.end(ctx, api, created, why); err == nil {
			a.left.Store(nil)
		}
	})
	code := a.conclude(s, why, did, r.timeout)
	if err != nil {
		a.console.fail("%v; it may still be there: %s", err, cancelIt)
		if code == nil {
			return exitError(exitFailed)
		}
	}
	return code
}

// end takes away what is not to be kept, and ends the work if it is not over: why is nil if it is. It returns what
// was done to the Goop, to be said.
func (r *runFlags) end(ctx context.Context, api *api, goop *v1alpha1.Goop, why error) (did string, err error) {
	ctx, done := lasting(ctx)
	defer done()
	switch {
	case errors.Is(why, errDeleted), r.keep && (why == nil || errors.Is(why, errRefused)):
		return "", nil
	case r.keep:
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"suspend":true}}`, goop.UID)
		_, err = api.goops.Patch(ctx, goop.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		did = fmt.Sprintf("the Goop %s is suspended, which ends its workers, and kept", goop.Name)
	default:
		err = api.goops.Delete(ctx, goop.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(goop.UID))})
		did = fmt.Sprintf("the Goop %s is deleted, which ends its workers", goop.Name)
	}
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case (apierrors.IsConflict(err) || apierrors.IsInvalid(err)) && api.isGone(ctx, goop):
		// With another uid a deletion is a conflict, and a patch is invalid.
		return "", nil
	case err != nil:
		return "", fmt.Errorf("ending the Goop %s: %w", goop.Name, err)
	case why == nil:
		return "", nil
	}
	return did, nil
}
