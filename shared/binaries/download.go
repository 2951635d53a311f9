package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"example.com/workbook/shared/step"
)

// Bounds on the silence of a server.
const (
	// reachable is for the first request to a place, so that a machine without a network goes on to build after a moment.
	reachable = 3 * time.Second
	// patience is for what it is known to have.
	patience = 30 * time.Second
)

// errChecksum means that a file was altered on its way.
var errChecksum = errors.New("checksum mismatch")

// fetch downloads a program to path. It fails, and leaves nothing there, if the content does not have the checksum,
// SHA-256 in hexadecimal digits.
func fetch(ctx context.Context, out io.Writer, address, sum, path string) (err error) {
	from, err := get(ctx, http.MethodGet, address, patience)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(path)
		}
	}()
	hash := sha256.New()
	stop := step.Progress(out, func() string { return filepath.Base(path) + ": " + from.progress() })
	_, err = io.Copy(io.MultiWriter(to, hash), from)
	stop()
	if err := errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("%s: %w", describe(address), err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("%s: %w: %s (computed) != %s (published)", describe(address), errChecksum, got, sum)
	}
	return nil
}

// getText returns the content of a small file.
func getText(ctx context.Context, address string) ([]byte, error) {
	from, err := get(ctx, http.MethodGet, address, reachable)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	text, err := io.ReadAll(io.LimitReader(from, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", describe(address), err)
	}
	return text, nil
}

// probe asks for the header of a file.
func probe(ctx context.Context, address string) error {
	from, err := get(ctx, http.MethodHead, address, reachable)
	if err != nil {
		return err
	}
	return from.Close()
}

// get asks for a file. Its error, and that of reading, is a short text: the file, its host and the cause. One cause is
// that the server is silent for longer than the limit.
func get(ctx context.Context, method, address string, limit time.Duration) (*body, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	b := &body{ctx: ctx, cancel: cancel, limit: limit}
	b.silence = time.AfterFunc(limit, func() { cancel(fmt.Errorf("no response within %s", limit)) })
	request, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err == nil {
		b.response, err = http.DefaultClient.Do(request) //nolint:bodyclose // Close does
	}
	if err == nil && b.response.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP status %s", b.response.Status)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", describe(address), b.cause(err))
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

// body is the content of a response.
type body struct {
	response *http.Response
	ctx      context.Context // the request's: it says why reading ended
	cancel   context.CancelCauseFunc
	limit    time.Duration
	silence  *time.Timer
	read     atomic.Int64
}

func (b *body) Read(p []byte) (int, error) {
	b.silence.Reset(b.limit)
	n, err := b.response.Body.Read(p)
	b.read.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.cause(err)
	}
	return n, err
}

func (b *body) Close() error {
	b.silence.Stop()
	b.cancel(nil)
	if b.response == nil {
		return nil
	}
	return b.response.Body.Close()
}

// progress says how much has come.
func (b *body) progress() string {
	const mega = 1e6
	read, all := float64(b.read.Load())/mega, float64(b.response.ContentLength)/mega
	if all <= 0 {
		return fmt.Sprintf("%.0f MB", read)
	}
	return fmt.Sprintf("%.0f of %.0f MB, %.0f %%", read, all, 100*read/all)
}

// cause strips from an HTTP client's error what names the address once more.
func (b *body) cause(err error) error {
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	return cause(err)
}

func cause(err error) error {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New(dns.Err)
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	if connection, ok := errors.AsType[*net.OpError](err); ok {
		err = connection.Err
	}
	return err
}

// describe names the file and the host of an address.
func describe(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	return path.Base(parsed.Path) + " of " + parsed.Host
}

// noise is what the go command writes that is no reason: its progress, and programs' exit statuses.
var noise = regexp.MustCompile(`exit status \d+(: )?|go: downloading .*`)

func oneLine(err error) string {
	return strings.Join(strings.Fields(noise.ReplaceAllString(err.Error(), "")), " ")
}
