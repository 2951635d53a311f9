package curve

import (
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The key pairs of flux-core's own tests, src/common/libzmqutil/test/cert.c, which libsodium created.
var published = []struct{ public, secret string }{
	{"8)TKx/<plQR>gO0.HCH/AsS3n[QeKMOy@}$)=GVu", "225YW{2q$:dqH]7cCbZW4a-}5Al/)0vkb>cE)o}Z"},
	{"FYFE.@650VuUqRGygAtG.RC$A<cid63q(WEnR+&y", "^Oto<5V$^d/V}kj6^Q[LRwdgAY5K3gE{gN2+1ox)"},
	{"Viyg(M7U*Q6ZI=D6(q?]amgXrQ{[IQnEY{IF5*X)", "7F)3@>MGW.+)..qc)8R#lfL31*^QX<GXufgpVtbA"},
}

func newCertificateFor(t *testing.T) *Certificate {
	t.Helper()
	secret, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &Certificate{Name: "demo", secret: secret}
}

// prove runs Prove at two ends of a connection.
func prove(t *testing.T, caller, called *Certificate) (callerErr, calledErr error) {
	t.Helper()
	here, there := pipe(t)
	done := make(chan error)
	go func() {
		err := called.Prove(there, Called, time.Now())
		there.Close()
		done <- err
	}()
	callerErr = caller.Prove(here, Caller, time.Now())
	here.Close()
	return callerErr, <-done
}

// pipe is a connection. One of net.Pipe would block if both ends write.
func pipe(t *testing.T) (here, there net.Conn) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	here, err = new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	there, err = listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

func TestProve(t *testing.T) {
	one, other := newCertificateFor(t), newCertificateFor(t)
	if callerErr, calledErr := prove(t, one, one); callerErr != nil || calledErr != nil {
		t.Errorf("with one certificate: %v, %v", callerErr, calledErr)
	}
	if callerErr, calledErr := prove(t, one, other); !errors.Is(callerErr, ErrOther) || !errors.Is(calledErr, ErrOther) {
		t.Errorf("with two certificates: %v, %v", callerErr, calledErr)
	}
}

// A peer that knows only the public key, and echoes what it receives, cannot prove anything.
func TestEchoIsNoProof(t *testing.T) {
	here, there := pipe(t)
	go func() { _, _ = io.Copy(there, there) }()
	if err := newCertificateFor(t).Prove(here, Called, time.Now()); !errors.Is(err, ErrOther) {
		t.Errorf("got %v", err)
	}
}

// Prove does not wait for a peer that sends nothing.
func TestSilence(t *testing.T) {
	here, _ := pipe(t)
	if err := newCertificateFor(t).Prove(here, Called, time.Now().Add(-patience)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// load reads a certificate with two keys.
func load(t *testing.T, public, secret string) (*Certificate, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "curve.cert")
	text := "# made by hand\n\nmetadata\n\tname = \"demo\"\n\tkeygen.time = \"2026-01-01T00:00:00\"\ncurve\n" +
		"    public-key = \"" + public + "\"\n    secret-key = \"" + secret + "\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

func TestLoad(t *testing.T) {
	for i, pair := range published {
		certificate, err := load(t, pair.public, pair.secret)
		if err != nil || certificate.Name != "demo" {
			t.Errorf("pair %d: got %+v, %v", i, certificate, err)
		}
		if _, err := load(t, published[(i+1)%3].public, pair.secret); err == nil {
			t.Errorf("pair %d with the public key of another was accepted", i)
		}
	}
}
