package curve

import (
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// ErrOther means that the other end has another certificate, or none.
var ErrOther = errors.New("the other end does not hold this certificate")

const (
	nonceSize = 32
	// patience is how long the other end may take.
	patience = 5 * time.Second
)

// Who is the end of a connection that proves. The two ends must differ, or an echo would be a valid proof.
type Who string

// The two ends of a connection.
const (
	Caller Who = "caller"
	Called Who = "called"
)

// Prove exchanges proofs over a new connection. Each end sends its public key and a new nonce. Then it sends the HMAC
// of both nonces; its key is the X25519 result of its secret key and the other end's public key. now is the current
// time.
func (c *Certificate) Prove(conn net.Conn, self Who, now time.Time) error {
	if err := conn.SetDeadline(now.Add(patience)); err != nil {
		return fmt.Errorf("limiting the time for a proof: %w", err)
	}
	other := Called
	if self == Called {
		other = Caller
	}
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // it never fails
	public := c.secret.PublicKey().Bytes()
	hello, err := exchange(conn, append(public, nonce...))
	if err != nil {
		return err
	}
	key, err := c.agree(hello[:keySize])
	if err != nil {
		return err
	}
	theirs := hello[keySize:]
	proof, err := exchange(conn, sign(key, self, nonce, theirs))
	if err != nil {
		return err
	}
	if !hmac.Equal(proof, sign(key, other, theirs, nonce)) {
		return ErrOther
	}
	return conn.SetDeadline(time.Time{})
}

// agree returns the secret that this end shares with the owner of a public key. Only one pair is authorized.
func (c *Certificate) agree(public []byte) ([]byte, error) {
	theirs, err := ecdh.X25519().NewPublicKey(public)
	if err != nil || !theirs.Equal(c.secret.PublicKey()) {
		return nil, ErrOther
	}
	key, err := c.secret.ECDH(theirs)
	if err != nil {
		return nil, ErrOther
	}
	return key, nil
}

func sign(key []byte, who Who, own, other []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(who))
	mac.Write(own)
	mac.Write(other)
	return mac.Sum(nil)
}

// exchange sends and receives the same number of bytes.
func exchange(conn net.Conn, out []byte) ([]byte, error) {
	if _, err := conn.Write(out); err != nil {
		return nil, fmt.Errorf("proving: %w", err)
	}
	in := make([]byte, len(out))
	if _, err := io.ReadFull(conn, in); err != nil {
		return nil, fmt.Errorf("proving: %w", err)
	}
	return in, nil
}
