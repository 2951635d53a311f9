// Package post is the service of exercise 19c.
package post

import (
	"context"
	"errors"
)

// ErrRejected is returned for a letter that the service does not accept. It has not sent it, and never will.
var ErrRejected = errors.New("the post office rejects the letter")

// Office sends letters. It knows no nonce: it sends the same letter once more for each call. It cannot be asked what it has sent.
type Office interface {
	// Send returns nil if the letter was sent, and ErrRejected if it was not. After any other error, such as a timeout, it may
	// have been sent or not.
	Send(ctx context.Context, text string) error
}
