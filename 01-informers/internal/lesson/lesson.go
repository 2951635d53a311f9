// Package lesson is what the programs of this stage have in common: their flags, the cluster they work on,
// a namespace that goes when they end, and how they fail.
package lesson

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/connect"
)

// Lesson is one program.
type Lesson struct {
	// Name is the folder that holds it.
	Name string
	// Shows is what --help says of it.
	Shows string
	// Flags declares flags besides --kubeconfig. It may be nil.
	Flags func(*flag.FlagSet)
	// Offline lessons need no cluster: they have no --kubeconfig, and their world is only Out.
	Offline bool
	// Run is the program itself. It ends by itself, or when ctx does.
	Run func(ctx context.Context, world *World) error
}

// World is what a lesson works with.
type World struct {
	// Out is where the lesson tells what it sees.
	Out io.Writer
	// Config and Client are for the cluster.
	Config *rest.Config
	Client kubernetes.Interface
	// Namespace is one that was made for this run, and goes with it.
	Namespace string
}

// Printf tells the reader one thing.
func (w *World) Printf(format string, args ...any) { fmt.Fprintf(w.Out, format, args...) }

// Main runs a lesson as a program: it never returns. The exit code is 1 after an error, 2 where the flags
// are wrong, and 0 also after Ctrl-C: the reader wanted it to end, and its namespace is gone. A second
// Ctrl-C ends it where it stands.
func Main(lesson Lesson) {
	// A reader who pipes the output into head still wants the namespace deleted: printing into a closed
	// pipe then fails, and nothing more happens.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(lesson, os.Args[1:], os.Stdout, os.Stderr))
}

func run(lesson Lesson, args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet(lesson.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var kubeconfig string
	if !lesson.Offline {
		flags.StringVar(&kubeconfig, "kubeconfig", "", "the kubeconfig `FILE` to use (default: the workbook's own, which \"make cluster\" writes)")
	}
	if lesson.Flags != nil {
		lesson.Flags(flags)
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		usage(lesson, flags, out)
		return 0
	case err != nil:
		fmt.Fprintf(errOut, "%s: %v; --help lists the flags\n", lesson.Name, err)
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(errOut, "%s takes no arguments, only flags: %q is too much; --help lists the flags\n", lesson.Name, flags.Arg(0))
		return 2
	}

	ctx, stop := untilSignal()
	defer stop()
	var err error
	if lesson.Offline {
		err = unlessEnded(ctx, lesson.Run(ctx, &World{Out: out}))
	} else {
		err = inNamespace(ctx, kubeconfig, out, errOut, lesson)
	}
	if err != nil {
		fmt.Fprintf(errOut, "%s: %v\n", lesson.Name, connect.Explain(err))
		return 1
	}
	return 0
}

// untilSignal returns a context that ends with the first Ctrl-C or SIGTERM. By the time it has ended, the
// next one does what it does by default: it ends the process. (signal.NotifyContext swallows it.)
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
		}
		signal.Stop(signals)
		cancel()
	}()
	return ctx, cancel
}

// usage is what --help prints. The flag package would write its flags with one dash, and this workbook
// writes them with two everywhere; both work.
func usage(lesson Lesson, flags *flag.FlagSet, out io.Writer) {
	if lesson.Offline && lesson.Flags == nil {
		fmt.Fprintf(out, "%s\n\nUsage: go run ./%s\n\nIt has no flags, and needs no cluster.\n", lesson.Shows, lesson.Name)
		return
	}
	fmt.Fprintf(out, "%s\n\nUsage: go run ./%s [flags]\n\nFlags:\n", lesson.Shows, lesson.Name)
	flags.VisitAll(func(one *flag.Flag) {
		value, text := flag.UnquoteUsage(one)
		fmt.Fprintf(out, "  %s\n      %s", strings.TrimSpace("--"+one.Name+" "+value), text)
		if one.DefValue != "" && one.DefValue != "false" {
			fmt.Fprintf(out, " (default: %s)", one.DefValue)
		}
		fmt.Fprintln(out)
	})
}

// patience is how long a cluster may take to make the namespace, and to delete it: one that cannot be
// reached often does not even refuse.
const patience = 10 * time.Second

// inNamespace runs a lesson in a namespace of its own and deletes it afterwards, also after Ctrl-C. An
// error that came after Ctrl-C, when everything ends, is none.
func inNamespace(ctx context.Context, kubeconfig string, out, errOut io.Writer, lesson Lesson) (err error) {
	config, err := connect.Config(kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "workbook/" + lesson.Name
	// A lesson sends a few dozen requests and should not wait for a client-side limit.
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	namespace, err := makeNamespace(ctx, client, lesson.Name)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer func() {
		if ctx.Err() != nil {
			fmt.Fprintf(errOut, "%s: interrupted; deleting the namespace %s\n", lesson.Name, namespace)
		}
		err = errors.Join(err, deleteNamespace(context.WithoutCancel(ctx), client, namespace))
	}()
	return unlessEnded(ctx, lesson.Run(ctx, &World{Out: out, Config: config, Client: client, Namespace: namespace}))
}

func unlessEnded(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

func makeNamespace(ctx context.Context, client kubernetes.Interface, lesson string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	namespace, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: lesson + "-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("making a namespace to work in: %w", err)
	}
	return namespace.Name, nil
}

func deleteNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the namespace %s, which was made for this run: %w", name, err)
	}
	return nil
}
