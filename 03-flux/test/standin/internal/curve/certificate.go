// Package curve reads the certificate that the brokers of one cluster share, and rejects what a Flux broker rejects.
// Both ends of a connection prove with it that they have the certificate. Real brokers use CurveZMQ, which also
// encrypts; the stand-in does not.
package curve

import (
	"bufio"
	"bytes"
	"crypto/ecdh"
	"fmt"
	"os"
	"regexp"
	"strings"

	"example.com/workbook/03-flux/test/standin/internal/words"
)

// keySize is the size of an X25519 key; in Z85 it has 40 characters.
const keySize = 32

// Certificate is a key pair.
type Certificate struct {
	// Name is what rank 0 authorizes others by. It is required.
	Name   string
	secret *ecdh.PrivateKey
}

// errInvalid is the only error that a broker reports about the content of the file.
const errInvalid = words.Error("Invalid argument")

// Load reads a certificate from a file that other users must not be able to read.
func Load(path string) (*Certificate, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, words.Errorf("%s: %v", path, words.System(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, words.Errorf("%s: %v", path, words.System(err))
	}
	if info.Mode().Perm()&0o044 != 0 {
		return nil, fmt.Errorf("%s: readable by group/other", path)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(f); err != nil {
		return nil, words.Errorf("%s: %v", path, words.System(err))
	}
	c, err := parse(text.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// entryPattern is a line of a section: key = "value", with the characters that a broker accepts in both.
var entryPattern = regexp.MustCompile(`^([A-Za-z0-9.-]+)\s*=\s*"([A-Za-z0-9 \t.:+=^!/*?&<>()\[\]{}@%$#-]*)"$`)

// parse reads the sections metadata and curve. Their names begin a line, and their entries are indented.
func parse(text []byte) (*Certificate, error) {
	sections := map[string]map[string]string{"metadata": {}, "curve": {}}
	var section map[string]string
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		if line[0] != ' ' && line[0] != '\t' {
			var known bool
			if section, known = sections[trimmed]; !known {
				return nil, errInvalid
			}
			continue
		}
		entry := entryPattern.FindStringSubmatch(trimmed)
		if entry == nil || section == nil {
			return nil, errInvalid
		}
		section[entry[1]] = entry[2]
	}
	return newCertificate(sections["metadata"]["name"], sections["curve"])
}

// newCertificate checks that there are exactly two keys, and that they are a pair.
func newCertificate(name string, keys map[string]string) (*Certificate, error) {
	if len(keys) != 2 {
		return nil, errInvalid
	}
	public, err := decodeZ85(keys["public-key"])
	if err != nil {
		return nil, err
	}
	private, err := decodeZ85(keys["secret-key"])
	if err != nil {
		return nil, err
	}
	secret, err := ecdh.X25519().NewPrivateKey(private)
	if err != nil || !bytes.Equal(secret.PublicKey().Bytes(), public) {
		return nil, errInvalid
	}
	return &Certificate{Name: name, secret: secret}, nil
}

// alphabet is that of Z85: five characters for four bytes.
const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// decodeZ85 decodes a key.
func decodeZ85(text string) ([]byte, error) {
	if len(text) != keySize/4*5 {
		return nil, errInvalid
	}
	var key []byte
	for ; text != ""; text = text[5:] {
		var value uint64
		for i := range 5 {
			digit := strings.IndexByte(alphabet, text[i])
			if digit < 0 {
				return nil, errInvalid
			}
			value = value*85 + uint64(digit)
		}
		if value > 0xffffffff {
			return nil, errInvalid
		}
		key = append(key, byte(value>>24), byte(value>>16), byte(value>>8), byte(value))
	}
	return key, nil
}
