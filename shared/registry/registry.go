// Package registry is a container registry for specs: it shows that an operator is deployed from one, with the names
// that its images have there.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"example.com/workbook/shared/cluster"
)

// Registry is a registry in this process, until Close.
type Registry struct {
	// Host is what names of images begin with, here and on the nodes: "localhost:5000". It is what
	// `make deploy REGISTRY=` takes, and image.ForRegistry.
	Host string

	cluster cluster.Cluster
	dir     string
	servers []*http.Server

	mu     sync.Mutex
	pulled map[string]bool
}

// Start serves a registry that the engine of this machine can push to, as it takes the name localhost for one that
// needs no certificate, and that the nodes of a kind cluster pull from, and those alone. It fails for other clusters,
// and where the nodes cannot reach this machine.
func Start(ctx context.Context, c cluster.Cluster) (*Registry, error) {
	address, err := cluster.HostAddress(ctx, c)
	if err != nil {
		return nil, err
	}
	r := &Registry{cluster: c, pulled: map[string]bool{}}
	port, err := r.serve("127.0.0.1", address)
	if err != nil {
		return nil, errors.Join(err, r.stop(ctx))
	}
	r.Host = net.JoinHostPort("localhost", port)
	if err := cluster.AddRegistry(ctx, c, r.Host, "http://"+net.JoinHostPort(address, port)); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

// Pulled are the images that nodes have asked for, without the host: "04-goop-manager:0123456789ab". They are sorted.
func (r *Registry) Pulled() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for name := range r.pulled {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Close ends the registry, and has the nodes forget it.
func (r *Registry) Close(ctx context.Context) error {
	return errors.Join(cluster.RemoveRegistry(ctx, r.cluster, r.Host), r.stop(ctx))
}

// serve listens on one port of two addresses: at the first, images are pushed and pulled, at the second pulled only.
func (r *Registry) serve(here, there string) (port string, err error) {
	if r.dir, err = os.MkdirTemp("", "registry-"); err != nil {
		return "", fmt.Errorf("making a folder for the registry: %w", err)
	}
	first, err := net.Listen("tcp", net.JoinHostPort(here, "0")) //nolint:noctx // it does not block
	if err != nil {
		return "", fmt.Errorf("starting the registry: %w", err)
	}
	_, port, err = net.SplitHostPort(first.Addr().String())
	if err != nil {
		return "", errors.Join(fmt.Errorf("starting the registry: %w", err), first.Close())
	}
	second, err := net.Listen("tcp", net.JoinHostPort(there, port)) //nolint:noctx // it does not block
	if err != nil {
		return "", errors.Join(fmt.Errorf("starting the registry for the nodes: %w", err), first.Close())
	}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(r.dir)))
	for listener, handler := range map[net.Listener]http.Handler{first: handler, second: r.pullOnly(handler)} {
		server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
		r.servers = append(r.servers, server)
		go func() { _ = server.Serve(listener) }() // it ends with Close
	}
	return port, nil
}

// manifest is the path at which an image is asked for by its tag.
var manifest = regexp.MustCompile(`^/v2/(.+)/manifests/([^:]+)$`)

// pullOnly serves the nodes.
func (r *Registry) pullOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodGet && request.Method != http.MethodHead {
			http.Error(w, "images are pulled here, not pushed", http.StatusMethodNotAllowed)
			return
		}
		if found := manifest.FindStringSubmatch(request.URL.Path); found != nil {
			r.mu.Lock()
			r.pulled[found[1]+":"+found[2]] = true
			r.mu.Unlock()
		}
		next.ServeHTTP(w, request)
	})
}

func (r *Registry) stop(ctx context.Context) error {
	var errs []error
	for _, server := range r.servers {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		if err := server.Shutdown(ctx); err != nil {
			errs = append(errs, server.Close())
		}
		cancel()
	}
	if r.dir != "" {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	return errors.Join(errs...)
}
