package broker

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
)

// The key pairs that flux-core publishes in src/common/libzmqutil/test/cert.c. CZMQ created the first one, and libzmq
// the others.
var publishedPairs = map[string]struct{ public, secret string }{
	"of the CZMQ sample":       {"8)TKx/<plQR>gO0.HCH/AsS3n[QeKMOy@}$)=GVu", "225YW{2q$:dqH]7cCbZW4a-}5Al/)0vkb>cE)o}Z"},
	"PAIR1":                    {"FYFE.@650VuUqRGygAtG.RC$A<cid63q(WEnR+&y", "^Oto<5V$^d/V}kj6^Q[LRwdgAY5K3gE{gN2+1ox)"},
	"PAIR2, # in a secret key": {"Viyg(M7U*Q6ZI=D6(q?]amgXrQ{[IQnEY{IF5*X)", "7F)3@>MGW.+)..qc)8R#lfL31*^QX<GXufgpVtbA"},
}

func TestCertificateOfPublishedSecretKey(t *testing.T) {
	for name, pair := range publishedPairs {
		t.Run(name, func(t *testing.T) {
			text, err := NewCertificate(bytes.NewReader(unZ85(t, pair.secret)))
			if err != nil {
				t.Fatal(err)
			}
			want := "metadata\n" +
				"    name = \"flux\"\n" +
				"curve\n" +
				"    public-key = \"" + pair.public + "\"\n" +
				"    secret-key = \"" + pair.secret + "\"\n"
			if string(text) != want {
				t.Errorf("the certificate is\n%swant\n%s", text, want)
			}
		})
	}
}

// The example of ZeroMQ RFC 32.
func TestZ85(t *testing.T) {
	tests := map[string]struct {
		data []byte
		want string
	}{
		"nothing":    {nil, ""},
		"of the RFC": {[]byte{0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B}, "HelloWorld"},
		"the least":  {[]byte{0, 0, 0, 0}, "00000"},
		"the most":   {[]byte{0xff, 0xff, 0xff, 0xff}, "%nSc0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := z85(test.data); got != test.want {
				t.Errorf("z85(%x) = %q, want %q", test.data, got, test.want)
			}
		})
	}
}

// Whatever the key is, its text must be a value that flux-core's cert.c accepts between quotes.
func TestCertificatesDiffer(t *testing.T) {
	form := regexp.MustCompile(`^metadata\n    name = "flux"\ncurve\n` +
		`    public-key = "[0-9A-Za-z.:+=^!/*?&<>()\[\]{}@%$#-]{40}"\n` +
		`    secret-key = "[0-9A-Za-z.:+=^!/*?&<>()\[\]{}@%$#-]{40}"\n$`)
	seen := map[string]bool{}
	for range 50 {
		text, err := NewCertificate(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if !form.Match(text) {
			t.Errorf("a certificate is\n%s", text)
		}
		for line := range strings.Lines(string(text)) {
			if key := strings.HasSuffix(strings.Fields(line)[0], "-key"); key && seen[line] {
				t.Errorf("a key was generated twice: %s", line)
			}
			seen[line] = true
		}
	}
}

func TestCertificateWithoutRandomness(t *testing.T) {
	empty := errors.New("no entropy")
	almost := bytes.Repeat([]byte{0xa7, 0x3c, 0x51, 0xe2}, 8)[:31]
	tests := map[string]struct {
		random io.Reader
		want   error
	}{
		"nothing":            {iotest.ErrReader(empty), empty},
		"one byte too few":   {bytes.NewReader(almost), io.ErrUnexpectedEOF},
		"fails in between":   {io.MultiReader(bytes.NewReader(almost), iotest.ErrReader(empty)), empty},
		"no bytes, no error": {bytes.NewReader(nil), io.EOF},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := NewCertificate(test.random)
			if !errors.Is(err, test.want) || text != nil {
				t.Fatalf("NewCertificate = %q, %v, want the error %v", text, err, test.want)
			}
			for _, secret := range []string{string(almost[:4]), hex.EncodeToString(almost[:4]), z85(almost[:4]), "167 60 81"} {
				if strings.Contains(strings.ToLower(err.Error()), strings.ToLower(secret)) {
					t.Errorf("the error contains the key: %v", err)
				}
			}
		})
	}
}

// unZ85 decodes what z85 encodes.
func unZ85(t *testing.T, text string) []byte {
	t.Helper()
	var data []byte
	for ; text != ""; text = text[5:] {
		var number uint32
		for _, digit := range text[:5] {
			number = number*85 + uint32(strings.IndexRune(z85Alphabet, digit))
		}
		data = binary.BigEndian.AppendUint32(data, number)
	}
	return data
}
