package main

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen soon. A real broker takes seconds where the stand-in takes
// milliseconds.
const patience = time.Minute

// program is the stand-in, built once for all tests, or a real flux if FLUX_PROGRAM names it: the tests are the same
// for both.
var program = os.Getenv("FLUX_PROGRAM")

func TestMain(m *testing.M) {
	os.Exit(withProgram(m.Run))
}

// withProgram builds the stand-in in the same way as for its image, without cgo.
func withProgram(run func() int) int {
	if program != "" {
		return run()
	}
	folder, err := os.MkdirTemp("", "standin")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	program = filepath.Join(folder, "flux")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the stand-in: %v\n%s", err, out)
		return 1
	}
	return run()
}

// instance is the files of some brokers on this machine. The attribute hostname makes the brokers differ.
type instance struct {
	// dir contains broker.toml, curve.cert and what the brokers create. It is short, because it is part of the path of
	// sockets.
	dir  string
	size int
	// settings are options of every broker.
	settings []string
}

// newInstance writes the files for brokers demo-0 and so on, of two cores each.
func newInstance(t *testing.T, size int) *instance {
	t.Helper()
	dir, err := os.MkdirTemp("", "flux") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	in := &instance{dir: dir, size: size, settings: []string{"-Sbroker.quorum-warn=1s", "-Sbroker.shutdown-timeout=5s"}}
	in.write(t, "curve.cert", newCertificate(t))
	in.write(t, "broker.toml", fmt.Sprintf(`[bootstrap]
curve_cert = %q
default_port = %d
default_bind = "tcp://127.0.0.1:%%p"
default_connect = "tcp://127.0.0.1:%%p"
hosts = [ { host = "demo-[0-%d]" } ]
[tbon]
connect_timeout = "5s"
[exec]
kill-timeout = "1s"
[resource]
noverify = true
[[resource.config]]
hosts = "demo-[0-%d]"
cores = "0-1"
`, in.path("curve.cert"), freePort(t), size-1, size-1))
	return in
}

func (in *instance) path(name string) string { return filepath.Join(in.dir, name) }

func (in *instance) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(in.path(name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (in *instance) read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(in.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// awaitFile waits until a file exists.
func (in *instance) awaitFile(t *testing.T, name string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(in.path(name)); err == nil {
			return
		}
	}
	t.Fatalf("there was no file %s within %s", name, patience)
}

// edit replaces, in one of the files, what matches a regular expression.
func (in *instance) edit(t *testing.T, name, pattern, replacement string) {
	t.Helper()
	content := in.read(t, name)
	edited := regexp.MustCompile(pattern).ReplaceAllLiteralString(content, replacement)
	if edited == content {
		t.Fatalf("%s does not contain %s", name, pattern)
	}
	in.write(t, name, edited)
}

// args are the arguments of one broker, with its initial program.
func (in *instance) args(rank int, more ...string) []string {
	args := append([]string{
		"broker", "--config-path=" + in.path("broker.toml"),
		fmt.Sprintf("-Shostname=demo-%d", rank),
		fmt.Sprintf("-Srundir=%s/run%d", in.dir, rank),
		fmt.Sprintf("-Sstatedir=%s/state%d", in.dir, rank),
	}, in.settings...)
	return append(args, more...)
}

// start starts one broker.
func (in *instance) start(t *testing.T, rank int, more ...string) *process {
	t.Helper()
	return start(t, in.args(rank, more...)...)
}

// startAll starts all brokers, the leader last, and returns them by rank.
func (in *instance) startAll(t *testing.T, initial ...string) []*process {
	t.Helper()
	brokers := make([]*process, in.size)
	for rank := in.size - 1; rank > 0; rank-- {
		brokers[rank] = in.start(t, rank)
	}
	brokers[0] = in.start(t, 0, initial...)
	return brokers
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// newCertificate creates a certificate without the code under test.
func newCertificate(t *testing.T) string {
	t.Helper()
	secret, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("metadata\n    name = \"demo\"\ncurve\n    public-key = \"%s\"\n    secret-key = \"%s\"\n",
		z85(secret.PublicKey().Bytes()), z85(secret.Bytes()))
}

func z85(key []byte) string {
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
	text := make([]byte, 0, 40)
	for ; len(key) > 0; key = key[4:] {
		value := binary.BigEndian.Uint32(key)
		group := make([]byte, 5)
		for i := 4; i >= 0; i-- {
			group[i] = alphabet[value%85]
			value /= 85
		}
		text = append(text, group...)
	}
	return string(text)
}
