package glass

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

const (
	// heartbeat is the time between two messages while there are no events, so that a closed connection is noticed.
	heartbeat = 15 * time.Second
	// writeTimeout is the limit for one message. A client that reads nothing for that long is disconnected. Its browser
	// reconnects with the id of the last message that it read, and gets a Dropped for what it missed.
	writeTimeout = 15 * time.Second
)

// events sends the events as server-sent events. Clients have no buffers of their own: each reads the ring at its own speed,
// so that a slow one needs no memory.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.clients <- struct{}{}:
		defer func() { <-s.clients }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many pages are connected already", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	stream := &stream{server: s, w: w, rc: http.NewResponseController(w)}
	if err := stream.begin(r); err != nil {
		return
	}
	_ = stream.follow(r) // the client has disconnected
}

// stream is one client's connection.
type stream struct {
	server *Server
	w      http.ResponseWriter
	rc     *http.ResponseController
	at     uint64 // the last event that was sent or dropped
	held   []Held // as last sent
}

// begin finds the first event for the client.
func (s *stream) begin(r *http.Request) error {
	hub := s.server.hub
	cursor := r.Header.Get("Last-Event-ID")
	if cursor == "" {
		cursor = r.URL.Query().Get("after")
	}
	snapshot := hub.snapshot()
	s.at, s.held = snapshot.Seq, snapshot.Held
	if cursor == "" {
		return s.send("", nil, ": events from now on\n\n")
	}
	seq, ok := hub.parseCursor(cursor)
	if !ok {
		return s.send("reset", struct{}{}, "")
	}
	s.at, s.held = seq, nil
	return s.send("", nil, ": events after the cursor\n\n")
}

// follow sends batches until the client disconnects or the server ends.
func (s *stream) follow(r *http.Request) error {
	hub := s.server.hub
	for {
		sent := hub.clock.Now()
		if err := s.sendNew(); err != nil {
			return err
		}
		// Held changes without an event, when an item arrives at the gate.
		var held <-chan struct{}
		if s.server.gate.Paused() {
			held = s.server.gate.Changed()
		}
		select {
		case <-hub.wait(s.at):
		case <-held:
		case <-time.After(heartbeat):
			if err := s.send("", nil, ": no events\n\n"); err != nil {
				return err
			}
		case <-r.Context().Done():
		case <-s.server.ended:
		}
		// One message may have many events.
		select {
		case <-time.After(hub.limits.Flush - hub.clock.Since(sent)):
		case <-r.Context().Done():
			return r.Context().Err()
		case <-s.server.ended:
			return nil
		}
	}
}

// sendNew sends the events after s.at.
func (s *stream) sendNew() error {
	batch, lost := s.server.hub.read(s.at)
	for lost != nil {
		s.at = lost.To
		if err := s.send("dropped", lost, ""); err != nil {
			return err
		}
		s.server.hub.countDropped(lost)
		batch, lost = s.server.hub.read(s.at)
	}
	if len(batch.Events) == 0 && slices.Equal(s.held, batch.Now.Held) {
		return nil
	}
	s.at += uint64(len(batch.Events))
	s.held = batch.Now.Held
	return s.send("batch", batch, "")
}

// send writes and flushes one message, or a comment.
func (s *stream) send(event string, data any, comment string) error {
	message := []byte(comment)
	if event != "" {
		content, err := json.Marshal(data)
		if err != nil {
			return fmt.Errorf("encoding events: %w", err)
		}
		message = fmt.Appendf(nil, "event: %s\nid: %s\ndata: %s\n\n", event, s.server.hub.formatCursor(s.at), content)
	}
	if err := s.rc.SetWriteDeadline(s.server.hub.clock.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("setting a deadline: %w", err)
	}
	if _, err := s.w.Write(message); err != nil {
		return err
	}
	return s.rc.Flush()
}
