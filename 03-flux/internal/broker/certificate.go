package broker

import (
	"crypto/ecdh"
	"fmt"
	"io"
)

// certificateText has the format that flux-core's src/common/libzmqutil/cert.c reads: a section begins at the start of
// a line, an entry is indented, and an unknown section is an error. Rank 0 knows the other brokers by the name: without
// one, overlay_authorize (src/modules/overlay/overlay.c) fails. Any name without an underscore works.
const certificateText = `metadata
    name = "flux"
curve
    public-key = "%s"
    secret-key = "%s"
`

// keySize is the size of an X25519 key, in bytes.
const keySize = 32

// NewCertificate returns the text of a new certificate, whose secret key comes from random. All brokers of a cluster
// share it. A client that has it can join them, so it must be kept in a Secret only.
func NewCertificate(random io.Reader) ([]byte, error) {
	secret := make([]byte, keySize)
	if _, err := io.ReadFull(random, secret); err != nil {
		return nil, fmt.Errorf("reading random bytes for a certificate: %w", err)
	}
	return certificate(secret)
}

// certificate returns the text of the certificate of a secret key. The keys of ZeroMQ's CURVE (RFC 26) are X25519 keys.
func certificate(secret []byte) ([]byte, error) {
	key, err := ecdh.X25519().NewPrivateKey(secret)
	if err != nil {
		return nil, fmt.Errorf("making the key of a certificate: %w", err)
	}
	return fmt.Appendf(nil, certificateText, z85(key.PublicKey().Bytes()), z85(secret)), nil
}
