// slownet runs a command behind a network of so many Mbit/s:
//
//	slownet [-mbit 50] [-programs DIR -kubernetes v1.37.0] COMMAND…
//
// It is an HTTPS proxy on this machine for whatever obeys HTTPS_PROXY: the go command, curl, Go programs. What all of them
// receive shares the rate. With -programs, it also answers for the hosts that publish Kubernetes' programs and kwok, with
// the files of that folder: for machines that do not reach them. Their certificates are its own, of an authority that only
// the command trusts. It ends with the command's exit code, and says how much went over the network.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

// chunk is how many bytes are sent at a time: a few milliseconds of a slow network.
const chunk = 32 << 10

func main() {
	mbit := flag.Float64("mbit", 50, "megabits a second")
	programs := flag.String("programs", "", "folder with the programs to publish")
	kubernetes := flag.String("kubernetes", "", "their version of Kubernetes")
	flag.Parse()
	if flag.NArg() == 0 || *mbit <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, *mbit, *programs, *kubernetes, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "slownet:", err)
		code = 1
	}
	os.Exit(code)
}

// run starts the proxy and the command, and returns the command's exit code.
func run(ctx context.Context, mbit float64, programs, kubernetes string, command []string) (int, error) {
	temp, err := os.MkdirTemp("", "slownet-")
	if err != nil {
		return 0, fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(temp)
	p := &proxy{limiter: rate.NewLimiter(rate.Limit(mbit*1e6/8), chunk)}
	environ := os.Environ()
	if programs != "" {
		if p.authority, err = newAuthority(); err != nil {
			return 0, err
		}
		if p.published, err = publish(programs, kubernetes); err != nil {
			return 0, err
		}
		trusted := filepath.Join(temp, "trusted.pem")
		if err := p.authority.writeTrusted(trusted); err != nil {
			return 0, err
		}
		environ = append(environ, "SSL_CERT_FILE="+trusted, "CURL_CA_BUNDLE="+trusted)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("listening: %w", err)
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	address := "http://" + listener.Addr().String()
	environ = append(environ, "HTTPS_PROXY="+address, "https_proxy="+address, "NO_PROXY=localhost,127.0.0.1", "no_proxy=localhost,127.0.0.1")
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	began := time.Now()
	err = cmd.Run()
	took, sent := time.Since(began).Seconds(), float64(p.sent.Load())
	fmt.Printf("slownet: %.0f s, in which %.0f MB were received at %.0f Mbit/s; the network alone needs %.0f s for that\n",
		took, sent/1e6, mbit, sent*8/mbit/1e6)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// proxy answers CONNECT.
type proxy struct {
	limiter   *rate.Limiter
	sent      atomic.Int64
	authority *authority
	// published are the hosts that it answers for.
	published map[string]http.Handler
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "this proxy is for HTTPS", http.StatusMethodNotAllowed)
		return
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remote, err := p.connect(r.Context(), host, r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer remote.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	go func() {
		// What the client says is little.
		_, _ = io.Copy(remote, buffered)
		_ = remote.Close()
	}()
	_, _ = io.CopyBuffer(struct{ io.Writer }{&slowly{p, client}}, remote, make([]byte, chunk))
}

// connect opens a connection to a host, or to what answers for it here.
func (p *proxy) connect(ctx context.Context, host, address string) (net.Conn, error) {
	if handler := p.published[host]; handler != nil {
		return p.authority.serve(host, handler)
	}
	dialer := net.Dialer{Timeout: 10 * time.Second}
	return dialer.DialContext(ctx, "tcp", address)
}

// slowly writes at the rate that all connections share.
type slowly struct {
	proxy *proxy
	to    io.Writer
}

func (s *slowly) Write(data []byte) (int, error) {
	if err := s.proxy.limiter.WaitN(context.Background(), len(data)); err != nil {
		return 0, err
	}
	n, err := s.to.Write(data)
	s.proxy.sent.Add(int64(n))
	return n, err
}
