package plugin

import (
	"crypto/sha256"
	"hash"
)

// maxCaptured is how many bytes at the beginning of a worker's output are kept if it is not shown at once. The rest is
// counted and compared, but not shown.
const maxCaptured = 1 << 20

// capture collects the output of one worker.
type capture struct {
	kept  []byte
	total int64
	sum   hash.Hash
}

func newCapture() *capture { return &capture{sum: sha256.New()} }

func (c *capture) Write(piece []byte) (int, error) {
	c.total += int64(len(piece))
	c.sum.Write(piece)
	if room := maxCaptured - len(c.kept); room > 0 {
		c.kept = append(c.kept, piece[:min(room, len(piece))]...)
	}
	return len(piece), nil
}

// settle adds the part of the record's output that is shown instead of what could not be read.
func (c *capture) settle(r result) {
	_, _ = c.Write(r.instead())
}

// clipped returns how many bytes are not shown.
func (c *capture) clipped() int64 { return c.total - int64(len(c.kept)) }
