// Glass serves a page on localhost that shows a running informer: watch events, deltas in the queue, objects in the store,
// calls of handlers, and keys that wait, are processed, or are in backoff. It runs the informer of internal/handmade for any
// resource, and can pause and step it. `make stage-1 watch` starts it.
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
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/connect"
	"example.com/workbook/01-informers/internal/glass"
)

const description = `Glass serves a page on localhost that shows a running informer, for any resource of the workbook's cluster: each change,
from the API server to the workers. It changes nothing in the cluster. Of secrets it reads only the metadata.`

const (
	// requestTimeout is the limit of each request at the start.
	requestTimeout = 10 * time.Second
	// shutdownTimeout is the limit for open requests at the end. A connection that a browser opened in advance takes it all.
	shutdownTimeout = time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// settings are the values of the flags.
type settings struct {
	resource, address, kubeconfig string
	options                       glass.Options
}

// run runs the program until ctx ends, and returns the exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	settings, err := parse(args, errOut)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // the flag package has printed why
	}
	if err := show(ctx, settings, out, errOut); err != nil && ctx.Err() == nil {
		fmt.Fprintf(errOut, "glass: %v\n", connect.Explain(err))
		return 1
	}
	return 0
}

func parse(args []string, errOut io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("glass", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "%s\n\nUsage: go run ./glass [flags]\n\n", description)
		flags.PrintDefaults()
	}
	flags.StringVar(&s.resource, "resource", "configmaps", "the resource to watch, by any `name` that kubectl accepts: plural, singular, short, or with .GROUP")
	flags.StringVar(&s.options.Namespace, "namespace", "", "the `namespace` to watch. Default: all")
	flags.StringVar(&s.options.Namespace, "n", "", "short for --namespace `namespace`")
	flags.StringVar(&s.address, "address", "127.0.0.1:8088", "the `address` to serve the page on; with port 0 the operating system chooses one")
	flags.IntVar(&s.options.Workers, "workers", 4, "how many keys are processed at once")
	flags.DurationVar(&s.options.WorkTime, "work-time", 50*time.Millisecond, "how long a worker takes for one key")
	flags.IntVar(&s.options.FailEvery, "fail-every", 0, "with `N`, the work fails every Nth time, to show backoff; 0: never")
	flags.BoolVar(&s.options.Paused, "paused", false, "start paused, to step from the first list")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "the kubeconfig `file` to use. Default: that of the workbook, which make cluster writes")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	var invalid error
	switch {
	case flags.NArg() > 0:
		invalid = errors.New("glass takes no arguments, only flags: --help lists them")
	case s.options.Workers < 1 || s.options.Workers > 100:
		invalid = fmt.Errorf("--workers is %d, want 1 to 100", s.options.Workers)
	case s.options.WorkTime < 0 || s.options.FailEvery < 0:
		invalid = errors.New("--work-time and --fail-every cannot be negative")
	}
	if invalid != nil {
		fmt.Fprintln(errOut, invalid)
	}
	return s, invalid
}

// show finds the resource to watch, and serves the page until ctx ends.
func show(ctx context.Context, s settings, out, errOut io.Writer) error {
	config, err := connect.Config(s.kubeconfig)
	if err != nil {
		return err
	}
	connect.GuardWatches(config)
	s.options.Config = config
	if err := find(ctx, s.resource, &s.options); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.address)
	if err != nil {
		// Not wrapped: connect.Explain would explain it as an error of the cluster.
		return fmt.Errorf("the page's address cannot be used: %s; choose another with --address", err.Error())
	}
	defer listener.Close()
	if !glass.LoopbackHost(listener.Addr().String()) {
		s.options.AnyHost = true
		fmt.Fprintf(errOut, "glass: warning: %s can be reached from other machines: their users can see objects of the cluster, and pause the informer\n", s.address)
	}
	s.options.Log = slog.New(slog.NewTextHandler(errOut, nil))
	server, err := glass.New(s.options)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The glass informer on %s: http://%s\nCtrl-C ends it.\n", described(s.options), listener.Addr())
	return serve(ctx, listener, server)
}

// find finds the resource in the cluster, and checks that it can be watched.
func find(ctx context.Context, name string, options *glass.Options) (err error) {
	limited := rest.CopyConfig(options.Config)
	limited.Timeout = requestTimeout
	if options.Resource, err = glass.Resolve(ctx, limited, name); err != nil {
		return err
	}
	if !glass.Namespaced(options.Resource) {
		options.Namespace = ""
	}
	return glass.CheckAccess(ctx, limited, options.Resource, options.Namespace)
}

func described(options glass.Options) string {
	resource := options.Resource.Resource.GroupResource().String()
	switch {
	case !glass.Namespaced(options.Resource):
		return resource
	case options.Namespace == "":
		return resource + " of all namespaces"
	}
	return resource + " of namespace " + options.Namespace
}

// serve runs the informer and serves the page until ctx ends, or until the page cannot be served.
func serve(ctx context.Context, listener net.Listener, handler *glass.Server) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second, // streams set their own deadlines
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
	running.Wait() // the streams end too
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(deadline); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}
