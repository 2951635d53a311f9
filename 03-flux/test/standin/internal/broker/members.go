package broker

import (
	"errors"
	"net"
	"slices"

	"example.com/workbook/03-flux/test/standin/internal/curve"
	"example.com/workbook/03-flux/test/standin/internal/wire"
	"example.com/workbook/03-flux/test/standin/internal/words"
)

// member is a rank that has authenticated; rank 0 is one without a connection.
type member struct {
	conn *wire.Conn
	// online is set once it has run its own rc1: it counts from then on.
	online bool
	cores  int
	used   int
}

// listen accepts followers from now on.
func (l *leader) listen() error {
	if l.cert.Name == "" {
		return words.Error("overlay_authorize: Invalid argument")
	}
	address, err := l.address("bind", l.config.Hosts[0].Bind)
	if err != nil {
		return err
	}
	if l.config.Hosts[0].Connect == "" {
		return words.Error("connect URI is undefined for rank 0")
	}
	listener, err := net.Listen("tcp", address) //nolint:noctx // it listens until the process ends
	if err != nil {
		return words.Errorf("bind %s: %v", l.config.Hosts[0].Bind, words.System(err))
	}
	go accept(listener, l.greet)
	return nil
}

// accept starts a goroutine for each connection.
func accept(listener net.Listener, handle func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go handle(conn)
		}
	}
}

// greet authenticates a follower, and then handles its messages until the connection ends. Like a broker it does not
// log a failed authentication.
func (l *leader) greet(conn net.Conn) {
	defer conn.Close()
	if err := l.cert.Prove(conn, curve.Called, l.now()); err != nil {
		return
	}
	wired := wire.New(conn)
	hello, err := wired.Receive()
	if err != nil || hello.Type != wire.Hello || hello.Rank < 1 || hello.Rank >= l.size() {
		return
	}
	m := &member{conn: wired, cores: hello.Cores}
	l.post(func() { l.admit(hello.Rank, m) })
	for {
		message, err := wired.Receive()
		switch {
		case err != nil:
			l.post(func() { l.lose(hello.Rank, m, true) })
			return
		case message.Type == wire.Goodbye:
			l.post(func() { l.lose(hello.Rank, m, false) })
		case message.Type == wire.Online:
			l.post(func() { l.join(hello.Rank, m) })
		default:
			l.take(hello.Rank, message)
		}
	}
}

// admit accepts an authenticated rank. Welcome is sent once the leader has begun.
func (l *leader) admit(rank int, m *member) {
	if l.state >= cleaning {
		m.conn.Close()
		return
	}
	if old := l.members[rank]; old != nil {
		l.lose(rank, old, true)
	}
	l.members[rank] = m
	if l.state > starting {
		l.welcome(m)
	}
}

func (l *leader) welcome(m *member) {
	if m.conn != nil {
		_ = m.conn.Send(wire.Message{Type: wire.Welcome}) // the receiver notices a lost connection
	}
}

// online are the ranks that count.
func (l *leader) online() []int {
	var ranks []int
	for rank := range l.size() {
		if m := l.members[rank]; m != nil && m.online {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// join counts a rank, before or after the quorum.
func (l *leader) join(rank int, m *member) {
	if l.members[rank] != m {
		return // it was lost before
	}
	m.online = true
	online := l.online()
	l.log.printf(info, "broker", "online: %s", l.names(online...))
	switch {
	case l.state == running:
		l.schedule()
	case l.state == waiting && len(online) >= l.timing.Quorum:
		if l.warned {
			l.log.printf(fail, "broker", "quorum reached")
		}
		l.state = running
		l.run(l.rc2, l.finish)
	}
}

// lose removes a rank, because its broker failed or is ending.
func (l *leader) lose(rank int, m *member, failed bool) {
	if l.members[rank] != m {
		return // it was lost before
	}
	delete(l.members, rank)
	if l.state == leaving {
		l.leaveIfAlone()
		return
	}
	if failed {
		l.log.printf(fail, "overlay", "%s failed", l.names(rank))
	}
	if l.state <= waiting || !m.online {
		return
	}
	l.log.printf(fail, "broker", "dead to Flux: %s", l.names(rank))
	for _, id := range l.ids() {
		l.jobs[id].loseRank(l, rank)
	}
}

// warn logs which ranks are missing for the quorum.
func (l *leader) warn() {
	if l.state != waiting {
		return
	}
	online := l.online()
	var missing []int
	for rank := range l.size() {
		if !slices.Contains(online, rank) {
			missing = append(missing, rank)
		}
	}
	l.warned = true
	l.log.printf(fail, "broker", "quorum delayed: waiting for %s", l.names(missing...))
}
