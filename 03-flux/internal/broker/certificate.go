package broker

import (
	"crypto/ecdh"
	"fmt"
	"io"
)

// certificateText has what flux-core's src/common/libzmqutil/cert.c reads: a section begins at the start of a line, an
// entry does not, and another section is an error. The name is what rank 0 knows the others by: without one,
// overlay_authorize (src/modules/overlay/overlay.c) fails. Any will do that has no underscore.
const certificateText = `metadata
    name = "flux"
curve
    public-key = "%s"
    secret-key = "%s"
`

// keySize is that of an X25519 key, in bytes.
const keySize = 32

// NewCertificate returns the text of a new certificate, whose secret key comes from random. All brokers of a cluster
// share it, and who has it may join them: it belongs into a Secret and nowhere else.
func NewCertificate(random io.Reader) ([]byte, error) {
	secret := make([]byte, keySize)
	if _, err := io.ReadFull(random, secret); err != nil {
		return nil, fmt.Errorf("reading random bytes for a certificate: %w", err)
	}
	return certificate(secret)
}

// certificate returns the text of the certificate of a secret key. That of ZeroMQ's CURVE (RFC 26) is one of X25519.
func certificate(secret []byte) ([]byte, error) {
	key, err := ecdh.X25519().NewPrivateKey(secret)
	if err != nil {
		return nil, fmt.Errorf("making the key of a certificate: %w", err)
	}
	return fmt.Appendf(nil, certificateText, z85(key.PublicKey().Bytes()), z85(secret)), nil
}
