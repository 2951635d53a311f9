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

// ErrOther means that the other end holds another certificate, or none.
var ErrOther = errors.New("the other end does not hold this certificate")

const (
	nonceSize = 32
	// patience is how long the other end has for its part.
	patience = 5 * time.Second
)

// Who says which end of a connection proves; the two must differ, or an echo would pass for a proof.
type Who string

// The two ends of a connection.
const (
	Caller Who = "caller"
	Called Who = "called"
)

// Prove exchanges proofs over a new connection: each end sends its public key and a fresh nonce, and then
// the HMAC, keyed by what X25519 makes of its secret key and the other's public key, of both nonces. now is when.
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

// agree returns the secret shared with who has the secret key to a public one. Only one pair is authorized.
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

// exchange sends and receives as much.
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
