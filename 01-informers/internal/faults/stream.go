package faults

import (
	"context"
	"errors"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
)

// stream is one watch under way.
type stream struct {
	ctx     context.Context
	request Request
	info    runtime.SerializerInfo
	// source is what the API server sends.
	source io.ReadCloser
	// strike brings the one failure that ends it.
	strike chan *Failure
}

// errBroken is an end that is passed on as a broken stream or connection.
var errBroken = errors.New("the watch is broken off")

// newStream puts a filter between the API server's watch and the client. first strikes from the start; it
// may be nil.
func newStream(ctx context.Context, request Request, answer *http.Response, first *Failure) (*stream, io.ReadCloser, error) {
	info, err := mediaType(answer.Header.Get("Content-Type"))
	if err != nil {
		return nil, nil, err
	}
	s := &stream{ctx: ctx, request: request, info: info, source: answer.Body, strike: make(chan *Failure, 1)}
	if first != nil {
		s.strike <- first
	}
	out, in := io.Pipe()
	go func() { in.CloseWithError(s.run(in)) }()
	return s, out, nil
}

// run passes events on until the watch ends. It returns nil where the client is to see an end in order.
func (s *stream) run(client io.Writer) error {
	events := s.events()
	for {
		// A failure that is there already comes before an event that is: select would choose by chance.
		select {
		case failure := <-s.strike:
			return s.fail(client, events, failure)
		default:
		}
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case failure := <-s.strike:
			return s.fail(client, events, failure)
		case event := <-events:
			if err := s.pass(client, event); err != nil {
				return ignoreEOF(err)
			}
		}
	}
}

// event is a frame from the API server, or how its watch ended.
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

func (s *stream) pass(client io.Writer, event event) error {
	if event.err != nil {
		return event.err
	}
	wire, err := framed(s.info, event.frame)
	if err != nil {
		return err
	}
	_, err = client.Write(wire)
	return err
}

func (s *stream) fail(client io.Writer, events <-chan event, failure *Failure) error {
	switch failure.rule.Fault {
	case GoneEvent:
		frame, err := errorEvent(s.info, failure.status())
		if err != nil {
			return err
		}
		return s.pass(client, event{frame: frame})
	case Hang:
		<-s.ctx.Done()
		return s.ctx.Err()
	case Cut:
		return ignoreEOF(s.tear(client, events, failure.rule.Whole))
	case Break:
		if err := s.tear(client, events, failure.rule.Whole); err != nil {
			return ignoreEOF(err)
		}
		return errBroken
	}
	// The other faults answer requests: the client has to send one.
	return nil
}

// tear passes some events on as they are, and of the next one the first half.
func (s *stream) tear(client io.Writer, events <-chan event, whole int) error {
	for passed := 0; ; passed++ {
		var next event
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case next = <-events:
		}
		if passed < whole || next.err != nil {
			if err := s.pass(client, next); err != nil {
				return err
			}
			continue
		}
		wire, err := framed(s.info, next.frame)
		if err != nil {
			return err
		}
		_, err = client.Write(wire[:len(wire)/2])
		return err
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
