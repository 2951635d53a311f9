package certificates

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"time"
)

const (
	// lifetime is how long a certificate is valid.
	lifetime = 90 * 24 * time.Hour
	// renewBefore is how long before the end of a certificate its successor is made.
	renewBefore = lifetime / 3
	// overlap is how long clients trust a certificate before it is served. Until then every replica has read the Secret
	// again, and every API server has the new caBundle.
	overlap = 24 * time.Hour
	// skew is how far the clock of an API server may be behind.
	skew = time.Hour
)

// The keys of the Secret. That of the bundle has all certificates that clients trust.
const (
	keyCertificate     = "tls.crt"
	keyPrivate         = "tls.key"
	keyBundle          = "ca.crt"
	keyNextCertificate = "next.crt"
	keyNextPrivate     = "next.key"
)

// pair is a certificate with its private key, as PEM and parsed.
type pair struct {
	certificate, private []byte
	parsed               tls.Certificate
}

// newPair makes a certificate that signs itself: it is its own CA, so there is no key of a CA to be kept.
func newPair(names []string, now time.Time) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: now.Add(-skew), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return parsePair(encode("CERTIFICATE", certificate), encode("PRIVATE KEY", private))
}

func encode(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}

func parsePair(certificate, private []byte) (*pair, error) {
	parsed, err := tls.X509KeyPair(certificate, private)
	if err != nil {
		return nil, err
	}
	return &pair{certificate, private, parsed}, nil
}

// usable reports whether the certificate is valid at a time of our clock, and for all of the names.
func (p *pair) usable(names []string, now time.Time) bool {
	return p != nil && !now.Before(p.parsed.Leaf.NotBefore) && now.Before(p.parsed.Leaf.NotAfter) &&
		!slices.ContainsFunc(names, func(name string) bool { return p.parsed.Leaf.VerifyHostname(name) != nil })
}

// renew returns what the Secret has to contain, from what it contains. It is the same for as long as there is nothing to do.
// What cannot be read, has expired or has other names is replaced.
func renew(data map[string][]byte, names []string, now time.Time) (renewed map[string][]byte, serving *pair, err error) {
	serving, _ = parsePair(data[keyCertificate], data[keyPrivate])
	next, _ := parsePair(data[keyNextCertificate], data[keyNextPrivate])
	if !next.usable(names, now) && !next.usable(names, now.Add(overlap)) { // not yet, if the clock of the replica that made it is ahead
		next = nil
	}
	// 1. The successor is served once it has been trusted for long enough, or if there is no other.
	if next.usable(names, now) && (!serving.usable(names, now) || !now.Before(next.parsed.Leaf.NotAfter.Add(overlap-lifetime))) {
		serving, next = next, nil
	}
	// 2. Without either, a new one is served at once.
	if !serving.usable(names, now) {
		if serving, err = newPair(names, now); err != nil {
			return nil, nil, err
		}
	}
	// 3. The successor is made early.
	if next == nil && !now.Before(serving.parsed.Leaf.NotAfter.Add(-renewBefore)) {
		if next, err = newPair(names, now); err != nil {
			return nil, nil, err
		}
	}
	renewed = map[string][]byte{keyCertificate: serving.certificate, keyPrivate: serving.private}
	trusted := [][]byte{data[keyBundle], serving.certificate}
	if next != nil {
		renewed[keyNextCertificate], renewed[keyNextPrivate] = next.certificate, next.private
		trusted = append(trusted, next.certificate)
	}
	renewed[keyBundle] = bundle(now, trusted...)
	return renewed, serving, nil
}

// bundle joins certificates, without those that have expired: until then a replica that was cut off may serve one. What is not valid
// yet was made by a replica whose clock is ahead, and stays.
func bundle(now time.Time, texts ...[]byte) []byte {
	var all [][]byte
	for rest := bytes.Join(texts, []byte("\n")); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return bytes.Join(all, nil)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		text := encode("CERTIFICATE", block.Bytes)
		if err == nil && now.Before(certificate.NotAfter) && !slices.ContainsFunc(all, func(other []byte) bool { return bytes.Equal(other, text) }) {
			all = append(all, text)
		}
	}
}
