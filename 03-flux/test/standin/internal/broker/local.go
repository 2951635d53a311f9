package broker

import (
	"net"
	"os"

	"example.com/workbook/03-flux/test/standin/internal/wire"
	"example.com/workbook/03-flux/test/standin/internal/words"
)

// serve accepts clients on the socket of local-uri.
func (b *broker) serve(respond func(*wire.Conn, wire.Message)) error {
	os.Remove(b.socket)                           // a previous broker may have left it
	listener, err := net.Listen("unix", b.socket) //nolint:noctx // it listens until the process ends
	if err != nil {
		return words.Errorf("local-uri: %v", words.System(err))
	}
	b.cleanup = append(b.cleanup, func() { listener.Close() })
	go accept(listener, func(conn net.Conn) {
		defer conn.Close()
		wired := wire.New(conn)
		if request, err := wired.Receive(); err == nil {
			respond(wired, request)
		}
	})
	return nil
}

// respond serves one client of the leader until its connection ends.
func (l *leader) respond(client *wire.Conn, request wire.Message) {
	switch request.Type {
	case wire.Run:
		var j *job
		l.post(func() { j = l.submit(client, request.Work) })
		for {
			m, err := client.Receive()
			if err != nil {
				return // its job continues without it
			}
			if m.Type == wire.Signal {
				l.post(func() { j.kill(l, m.Signal) })
			}
		}
	case wire.List:
		done := make(chan struct{})
		l.post(func() {
			_ = client.Send(wire.Message{Type: wire.Value, Text: l.table()}) // the client may have ended
			close(done)
		})
		<-done
	default:
		l.respondCommon(client, request)
	}
}

// respondCommon handles the requests that every rank can handle.
func (b *broker) respondCommon(client *wire.Conn, request wire.Message) {
	reply := wire.Message{Type: wire.Value, Code: 1, Text: "the stand-in does this on rank 0 only"}
	if request.Type == wire.Get {
		value, err := b.options.Attributes.Get(request.Text)
		reply = wire.Message{Type: wire.Value, Text: value}
		if err != nil {
			reply = wire.Message{Type: wire.Value, Code: 1, Text: err.Error()}
		}
	}
	_ = client.Send(reply) // the client may have ended
}
