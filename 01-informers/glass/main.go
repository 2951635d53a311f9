// Glass shows an informer at work, in a page on localhost: events that come from the API server, deltas in the
// queue, objects in the store, handlers that are called, keys that wait, that are worked on, that are kept back
// after a failure. It runs the informer of internal/handmade on any resource, and can hold and step it. `make
// stage-1 watch` starts it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/connect"
	"example.com/workbook/01-informers/internal/glass"
)

const shows = `Glass shows an informer at work, in a page on localhost: any resource of the workbook's cluster, on its way from the
API server to the workers. It changes nothing in the cluster. Of secrets it reads only the metadata.`

const (
	exitFailed = 1
	exitUsage  = 2

	// answers is how long the cluster may take to answer the questions at the start.
	answers = 10 * time.Second
	// shutdown is how long requests in flight may take at the end. A connection that a browser opened in advance
	// takes it too.
	shutdown = time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// settings are what the flags say.
type settings struct {
	resource, address, kubeconfig string
	options                       glass.Options
}

// run is the program: it ends with ctx. It returns the exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	settings, err := parse(args, errOut)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage // the flag package has said why
	}
	if err := show(ctx, settings, out, errOut); err != nil && ctx.Err() == nil {
		fmt.Fprintf(errOut, "glass: %v\n", connect.Explain(err))
		return exitFailed
	}
	return 0
}

func parse(args []string, errOut io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("glass", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "%s\n\nUsage: go run ./glass [flags]\n\n", shows)
		flags.PrintDefaults()
	}
	flags.StringVar(&s.resource, "resource", "configmaps", "what to watch, by any `name` that kubectl knows: plural, singular, short, or with .GROUP")
	flags.StringVar(&s.options.Namespace, "namespace", "", "the `namespace` to watch. Default: all")
	flags.StringVar(&s.options.Namespace, "n", "", "short for --namespace `namespace`")
	flags.StringVar(&s.address, "address", "127.0.0.1:8088", "the `address` to serve the page on; with port 0 the system picks one")
	flags.IntVar(&s.options.Workers, "workers", 4, "how many keys are worked on at once")
	flags.DurationVar(&s.options.WorkTime, "work-time", 50*time.Millisecond, "how long a worker takes for one key")
	flags.IntVar(&s.options.FailEvery, "fail-every", 0, "with `N`, every Nth piece of work fails, so that back-off is seen; 0 is never")
	flags.BoolVar(&s.options.Paused, "paused", false, "hold everything from the start, to be stepped")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "the kubeconfig `file` to use. Default: the workbook's own, which make cluster writes")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	var wrong error
	switch {
	case flags.NArg() > 0:
		wrong = errors.New("glass takes no arguments, only flags: --help lists them")
	case s.options.Workers < 1 || s.options.Workers > 100:
		wrong = fmt.Errorf("--workers is %d, want 1 to 100", s.options.Workers)
	case s.options.WorkTime < 0 || s.options.FailEvery < 0:
		wrong = errors.New("--work-time and --fail-every cannot be negative")
	}
	if wrong != nil {
		fmt.Fprintln(errOut, wrong)
	}
	return s, wrong
}

// show finds what to watch, and serves the page until ctx ends.
func show(ctx context.Context, s settings, out, errOut io.Writer) error {
	config, err := connect.Config(s.kubeconfig)
	if err != nil {
		return err
	}
	connect.GuardWatches(config)
	s.options.Config = config
	if s.options.Found, err = find(ctx, config, s.resource, s.options.Namespace); err != nil {
		return err
	}
	var listenConfig net.ListenConfig
	listener, err := listenConfig.Listen(ctx, "tcp", s.address)
	if err != nil {
		return unusable{err}
	}
	defer listener.Close()
	if !loopback(listener.Addr()) {
		s.options.AnyHost = true
		fmt.Fprintf(errOut, "glass: warning: %s can be reached from other machines: whoever does sees what is in the cluster, and can pause the page\n", s.address)
	}
	s.options.Log = slog.New(slog.NewTextHandler(errOut, nil))
	server, err := glass.New(s.options)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The glass informer on %s: http://%s\nCtrl-C ends it.\n", described(s.options), listener.Addr())
	return serve(ctx, listener, server)
}

// unusable is an error about the page's own address. It is kept from connect.Explain, which would take it for
// the cluster's.
type unusable struct{ cause error }

func (u unusable) Error() string {
	return fmt.Sprintf("the page's address cannot be used: %v; choose another with --address", u.cause)
}

// find asks the cluster whether there is such a resource, and whether it may be watched.
func find(ctx context.Context, config *rest.Config, name, namespace string) (glass.Found, error) {
	asking := rest.CopyConfig(config)
	asking.Timeout = answers
	found, err := glass.Resolve(asking, name)
	if err != nil {
		return found, err
	}
	if !found.Namespaced {
		namespace = ""
	}
	return found, glass.Allowed(ctx, asking, found, namespace)
}

func described(options glass.Options) string {
	resource := options.Found.Resource.GroupResource().String()
	switch {
	case !options.Found.Namespaced:
		return resource
	case options.Namespace == "":
		return resource + " of all namespaces"
	}
	return resource + " of namespace " + options.Namespace
}

func loopback(address net.Addr) bool {
	port, err := netip.ParseAddrPort(address.String())
	return err == nil && port.Addr().IsLoopback()
}

// serve runs informer and page until ctx ends, or until the page cannot be served.
func serve(ctx context.Context, listener net.Listener, handler *glass.Server) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second, // streams set their own
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	var running sync.WaitGroup
	running.Go(func() { handler.Run(ctx) })
	defer running.Wait()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		end()
		return fmt.Errorf("serving the page: %w", err)
	case <-ctx.Done():
	}
	running.Wait() // which ends the streams too
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown)
	defer cancel()
	if err := server.Shutdown(deadline); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}
