package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/workbook/02-lolcow/internal/cow"
)

// patience is how long a test waits for what the program must do soon.
const patience = 20 * time.Second

// binary is the program, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	os.Exit(withBinary(m.Run))
}

// withBinary builds the program as the image's build does, without cgo.
func withBinary(run func() int) int {
	folder, err := os.MkdirTemp("", "lolcow")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	binary = filepath.Join(folder, "lolcow")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building lolcow: %v\n%s", err, out)
		return 1
	}
	return run()
}

func TestGreeting(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"nothing":             {nil, ""},
		"only the separator":  {[]string{"--"}, ""},
		"an empty greeting":   {[]string{"--", ""}, ""},
		"words":               {[]string{"Oh", "my", "gosh!"}, "Oh my gosh!"},
		"one argument":        {[]string{"--", "a  b\nc"}, "a  b\nc"},
		"help as greeting":    {[]string{"--", "--help"}, "--help"},
		"help among words":    {[]string{"--help", "me"}, "--help me"},
		"a leading dash":      {[]string{"-rf", "/"}, "-rf /"},
		"a second separator":  {[]string{"--", "--"}, "--"},
		"a separator between": {[]string{"a", "--", "b"}, "a -- b"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := greeting(test.args); got != test.want {
				t.Errorf("greeting(%q) = %q, want %q", test.args, got, test.want)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, flag := range []string{"--help", "-h"} {
		var stdout, stderr bytes.Buffer
		if code := run([]string{flag}, &stdout, &stderr); code != 0 || stdout.String() != usage || stderr.Len() > 0 {
			t.Errorf("lolcow %s: exit %d, stdout %q, stderr %q", flag, code, &stdout, &stderr)
		}
	}
}

func TestBadPort(t *testing.T) {
	for _, port := range []string{"moo", "-1", "65536", "80.5", " 80", "tcp://10.0.0.1:80"} {
		t.Run(port, func(t *testing.T) {
			t.Setenv("PORT", port)
			var stdout, stderr bytes.Buffer
			code := run([]string{"moo"}, &stdout, &stderr)
			want := fmt.Sprintf("lolcow: PORT is %q, want a number from 0 to 65535\n", port)
			if code != exitUsage || stderr.String() != want || stdout.Len() > 0 {
				t.Errorf("exit %d, stdout %q, stderr %q; want %d, nothing, %q", code, &stdout, &stderr, exitUsage, want)
			}
		})
	}
}

func TestPortInUse(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PORT", port)
	var stdout, stderr bytes.Buffer
	if code := run([]string{"moo"}, &stdout, &stderr); code != exitFailed || !strings.Contains(stderr.String(), "address already in use") {
		t.Errorf("exit %d, stderr %q; want %d and that the address is in use", code, &stderr, exitFailed)
	}
}

// program is the running binary.
type program struct {
	*exec.Cmd
	stdout  bytes.Buffer // to be read when the program has ended
	log     chan string  // its lines on stderr
	address string
}

// start runs the binary on a free port and waits until it serves.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	p := &program{Cmd: exec.CommandContext(ctx, binary, args...), log: make(chan string, 100)}
	p.Env = append(os.Environ(), "PORT=0")
	p.Stdout = &p.stdout
	stderr, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.log)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.log <- lines.Text()
		}
	}()
	line := p.awaitLog(t, "msg=serving")
	address := regexp.MustCompile(`address=\[::\]:(\d+)`).FindStringSubmatch(line)
	if address == nil {
		t.Fatalf("no address in %q", line)
	}
	p.address = "127.0.0.1:" + address[1]
	return p
}

// awaitLog returns the next line of the log that holds text.
func (p *program) awaitLog(t *testing.T, text string) string {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line, open := <-p.log:
			if !open {
				t.Fatalf("the program ended before it logged %q", text)
			}
			if strings.Contains(line, text) {
				return line
			}
		case <-timeout:
			t.Fatalf("%q was not logged within %s", text, patience)
		}
	}
}

// signal sends a signal to the program.
func (p *program) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatalf("sending %s: %v", signal, err)
	}
}

// awaitEnd drains the log and returns how the program ended.
func (p *program) awaitEnd() error {
	for range p.log {
		continue
	}
	return p.Wait()
}

// A request under way when the signal comes gets its whole response, and the program
// exits with 0 within the 10 s that it promises.
func TestSignalLetsTheRequestFinish(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p := start(t, "--", "Bye!")
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			// The program is frozen meanwhile: when it goes on, it finds both the
			// signal and the rest of the request.
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n")
			p.signal(t, syscall.SIGSTOP)
			fmt.Fprint(conn, "Accept: text/plain\r\n\r\n")
			p.signal(t, signal)
			p.signal(t, syscall.SIGCONT)
			signalled := time.Now()

			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("reading the response: %v", err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != http.StatusOK || string(body) != cow.Say("Bye!") {
				t.Errorf("status %d, error %v, body\n%s", response.StatusCode, err, body)
			}
			if err := p.awaitEnd(); err != nil {
				t.Errorf("the program ended with %v, want exit 0", err)
			}
			if took := time.Since(signalled); took > 10*time.Second {
				t.Errorf("the end took %s", took)
			}
			if p.stdout.String() != cow.Say("Bye!") {
				t.Errorf("the cow in a pipe is not plain:\n%q", &p.stdout)
			}
		})
	}
}

// A second signal does not wait for anything.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	p := start(t, "--", "Bye!")
	p.signal(t, syscall.SIGTERM)
	p.awaitLog(t, "shutting down")
	p.signal(t, syscall.SIGTERM)
	var exit *exec.ExitError
	if err := p.awaitEnd(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the program ended with %v, want that SIGTERM killed it", err)
	}
}

// Without a greeting the page and the terminal show the same fortune.
func TestFortuneIsPickedOnce(t *testing.T) {
	p := start(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", "curl/8.5.0")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	served, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	p.signal(t, syscall.SIGTERM)
	if err := p.awaitEnd(); err != nil {
		t.Errorf("the program ended with %v, want exit 0", err)
	}
	if p.stdout.String() != string(served) || p.stdout.String() == cow.Say("") {
		t.Errorf("printed\n%sserved\n%s", &p.stdout, served)
	}
}
