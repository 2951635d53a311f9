// Package lesson holds what the programs of this stage share: flags, access to a cluster, a namespace that
// each run creates and deletes, and error messages.
package lesson

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
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
	// Name is the name of the folder that holds the program.
	Name string
	// Shows is the description that --help prints.
	Shows string
	// Offline lessons need no cluster: they have no --kubeconfig, and their Env has only Out.
	Offline bool
	// Run returns when the lesson is complete or ctx is cancelled. Check and Must end it with an error.
	Run func(ctx context.Context, env *Env)
}

// Do runs the lesson, and returns the error of Check or Must.
func (l Lesson) Do(ctx context.Context, env *Env) (err error) {
	defer func() {
		switch ended := recover().(type) {
		case nil:
		case failure:
			err = ended.error
		default:
			panic(ended)
		}
	}()
	l.Run(ctx, env)
	return nil
}

// failure is what Check panics with.
type failure struct{ error }

// Check ends the lesson if there is an error. A lesson is a sequence of steps that depend on each other, so none of them
// handles errors, and the code shows only what it teaches. A program that has to go on, such as a controller, returns them.
// Only the goroutine of the lesson may call it: in another one it ends the process, and the namespace is not deleted.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Must returns the value, or ends the lesson: see Check.
func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Env is what a lesson works with.
type Env struct {
	// Out receives what the lesson prints.
	Out io.Writer
	// Config and Client connect to the cluster.
	Config *rest.Config
	Client kubernetes.Interface
	// Namespace was created for this run, and is deleted after it.
	Namespace string
}

// Printf prints to Out.
func (e *Env) Printf(format string, args ...any) { fmt.Fprintf(e.Out, format, args...) }

// Main runs a lesson as a program. It never returns. The exit code is 1 for an error, 2 for invalid flags,
// and 0 after Ctrl-C, because the user asked for it and the namespace is deleted. A second Ctrl-C ends the
// process at once.
func Main(lesson Lesson) {
	// When the output is piped into head, the lesson has to delete its namespace all the same. With SIGPIPE
	// ignored, printing to the closed pipe returns an error instead of ending the process.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(lesson, os.Args[1:], os.Stdout, os.Stderr))
}

const kubeconfigUsage = `the kubeconfig FILE to use (default: the workbook's own, which "make cluster" writes)`

func run(lesson Lesson, args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet(lesson.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var kubeconfig string
	if !lesson.Offline {
		flags.StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		usage(lesson, out)
		return 0
	case err != nil:
		fmt.Fprintf(errOut, "%s: %v; --help lists the flags\n", lesson.Name, err)
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(errOut, "%s: unexpected argument %q; --help lists the flags\n", lesson.Name, flags.Arg(0))
		return 2
	}

	ctx, stop := untilSignal()
	defer stop()
	var err error
	if lesson.Offline {
		err = unlessEnded(ctx, lesson.Do(ctx, &Env{Out: out}))
	} else {
		err = inNamespace(ctx, kubeconfig, out, errOut, lesson)
	}
	if err != nil {
		fmt.Fprintf(errOut, "%s: %v\n", lesson.Name, connect.Explain(err))
		return 1
	}
	return 0
}

// untilSignal returns a context that is cancelled by the first SIGINT (Ctrl-C) or SIGTERM, and by SIGHUP, which a closed
// terminal sends, unless the process runs under nohup. Once the context is cancelled, the next Ctrl-C ends the process;
// signal.NotifyContext would ignore it. A second SIGHUP, which some shells send, stays ignored.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals, hangUps := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangUps, syscall.SIGHUP)
	}
	go func() {
		select {
		case <-signals:
		case <-hangUps:
		case <-ctx.Done():
		}
		signal.Stop(signals)
		cancel()
	}()
	return ctx, cancel
}

// usage prints the help text.
func usage(lesson Lesson, out io.Writer) {
	fmt.Fprintf(out, "%s\n\nUsage: go run ./%s", lesson.Shows, lesson.Name)
	if lesson.Offline {
		fmt.Fprint(out, "\n\nIt has no flags and needs no cluster.\n")
		return
	}
	fmt.Fprintf(out, " [flags]\n\nFlags:\n  --kubeconfig FILE\n      %s\n", kubeconfigUsage)
}

// requestTimeout bounds the requests that create and delete the namespace, because a cluster behind a
// firewall may never respond.
const requestTimeout = 10 * time.Second

// inNamespace creates a namespace, runs the lesson in it, and deletes it, also after Ctrl-C. An error that
// occurs after Ctrl-C is a consequence of it, and is not reported.
func inNamespace(ctx context.Context, kubeconfig string, out, errOut io.Writer, lesson Lesson) (err error) {
	config, err := connect.Config(kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "workbook/" + lesson.Name
	// A lesson sends a few dozen requests and must not be slowed down by client-side rate limiting.
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	namespace, err := createNamespace(ctx, client, lesson.Name)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer func() {
		if ctx.Err() != nil {
			fmt.Fprintf(errOut, "%s: interrupted; deleting the namespace %s\n", lesson.Name, namespace)
		}
		err = errors.Join(err, deleteNamespace(context.WithoutCancel(ctx), client, namespace))
	}()
	return unlessEnded(ctx, lesson.Do(ctx, &Env{Out: out, Config: config, Client: client, Namespace: namespace}))
}

func unlessEnded(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// createNamespace waits for the response also after Ctrl-C. The server generates the name, and without the
// response the namespace could not be deleted.
func createNamespace(ctx context.Context, client kubernetes.Interface, lesson string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	namespace, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: lesson + "-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a namespace for the lesson: %w", err)
	}
	return namespace.Name, nil
}

func deleteNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the namespace %s, which was created for this run: %w", name, err)
	}
	return nil
}
