package wire

import (
	"context"
	"errors"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// stream is an open watch.
type stream struct {
	ctx     context.Context
	request Request
	info    runtime.SerializerInfo
	// source is what the API server sends.
	source io.ReadCloser
	// fault delivers the one injection that ends the watch.
	fault chan *Injection
}

// errBroken ends a watch with an error.
var errBroken = errors.New("an injected fault breaks the watch")

// newStream returns a watch, and the body that the client reads. first is in effect from the start; it may be nil.
func newStream(ctx context.Context, request Request, response *http.Response, first *Injection) (*stream, io.ReadCloser, error) {
	info, err := mediaType(response.Header.Get("Content-Type"))
	if err != nil {
		return nil, nil, err
	}
	s := &stream{ctx: ctx, request: request, info: info, source: response.Body, fault: make(chan *Injection, 1)}
	if first != nil {
		s.fault <- first
	}
	body, client := io.Pipe()
	go func() { client.CloseWithError(s.run(client)) }()
	return s, body, nil
}

// run forwards events until the watch ends. It returns nil if the client is to see no error.
func (s *stream) run(client io.Writer) error {
	events := s.events()
	for {
		// With both ready, select would choose at random: a fault comes before an event.
		select {
		case injection := <-s.fault:
			return s.inject(client, events, injection)
		default:
		}
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case injection := <-s.fault:
			return s.inject(client, events, injection)
		case event := <-events:
			if err := s.forward(client, event); err != nil {
				return ignoreEOF(err)
			}
		}
	}
}

// event is an event from the API server without its framing, or the error that its watch ended with.
type event struct {
	frame []byte
	err   error
}

// events reads the API server's watch, until it or the client's request ends.
func (s *stream) events() <-chan event {
	events := make(chan event)
	go func() {
		defer s.source.Close()
		reader := s.info.StreamSerializer.NewFrameReader(s.source)
		for {
			frame, err := readFrame(reader)
			select {
			case events <- event{frame: frame, err: err}:
			case <-s.ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return events
}

func (s *stream) forward(client io.Writer, event event) error {
	if event.err != nil {
		return event.err
	}
	sent, err := framed(s.info, event.frame)
	if err != nil {
		return err
	}
	_, err = client.Write(sent)
	return err
}

func (s *stream) inject(client io.Writer, events <-chan event, injection *Injection) error {
	switch injection.rule.Fault {
	case GoneEvent:
		frame, err := encodeEvent(s.info, watch.Error, injection.status())
		if err != nil {
			return err
		}
		return s.forward(client, event{frame: frame})
	case Hang:
		<-s.ctx.Done()
		return s.ctx.Err()
	case Cut:
		return ignoreEOF(s.truncate(client, events, injection.rule.Whole))
	case Break:
		if err := s.truncate(client, events, injection.rule.Whole); err != nil {
			return ignoreEOF(err)
		}
		return errBroken
	}
	// The other faults are responses: the client has to send a request.
	return nil
}

// truncate forwards some events, and the first half of the one after them.
func (s *stream) truncate(client io.Writer, events <-chan event, whole int) error {
	for forwarded := 0; ; forwarded++ {
		var next event
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case next = <-events:
		}
		if forwarded < whole || next.err != nil {
			if err := s.forward(client, next); err != nil {
				return err
			}
			continue
		}
		sent, err := framed(s.info, next.frame)
		if err != nil {
			return err
		}
		_, err = client.Write(sent[:len(sent)/2])
		return err
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
