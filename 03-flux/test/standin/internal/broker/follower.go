package broker

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"

	"example.com/workbook/03-flux/test/standin/internal/curve"
	"example.com/workbook/03-flux/test/standin/internal/wire"
)

// Exit codes of a follower that a signal ends.
const (
	exitJoined    = 0
	exitNotJoined = 1
)

// The delays between attempts to join: each is twice as long as the one before.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = time.Second
)

// follower is any rank except 0.
type follower struct {
	*broker
	leader   *wire.Conn // nil until it has joined
	rc1      *program   // while it runs
	executor *executor
	code     int
	over     bool
	// lost is set if the connection to the leader was lost without Shutdown. A broker then ends neither by itself nor on
	// a signal.
	lost bool
}

// follow runs a follower.
func (b *broker) follow(signals <-chan os.Signal) int {
	f := &follower{broker: b}
	if _, err := b.prepare(); err != nil {
		return exitRejected
	}
	if err := b.serve(b.respondCommon); err != nil {
		b.log.printf(crit, "broker", "%v", err)
		return exitRejected
	}
	address, err := b.address("connect", b.config.Hosts[0].Connect)
	if err != nil {
		b.log.printf(crit, "overlay", "%v", err)
		return exitRejected
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go f.connect(ctx, address)
	for !f.over {
		select {
		case event := <-b.events:
			event()
		case s := <-signals:
			f.signal(s)
		}
	}
	return f.code
}

// connect tries to join until it succeeds. Like a broker it does not log failed attempts.
func (f *follower) connect(ctx context.Context, address string) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		conn, err := f.join(ctx, address)
		if err == nil {
			f.listen(conn)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// errRejected means that the leader does not accept this rank now.
var errRejected = errors.New("the leader does not answer as one")

func (f *follower) join(ctx context.Context, address string) (*wire.Conn, error) {
	dialer := net.Dialer{Timeout: f.config.ConnectTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := f.cert.Prove(conn, curve.Caller, f.now()); err != nil {
		conn.Close()
		return nil, err
	}
	wired := wire.New(conn)
	if err := wired.Send(wire.Message{Type: wire.Hello, Rank: f.config.Rank, Cores: runtime.NumCPU()}); err != nil {
		conn.Close()
		return nil, err
	}
	if welcome, err := wired.Receive(); err != nil || welcome.Type != wire.Welcome {
		conn.Close()
		return nil, errRejected
	}
	return wired, nil
}

// listen handles the messages of the leader until the connection ends.
func (f *follower) listen(leader *wire.Conn) {
	f.post(func() {
		f.leader = leader
		f.executor = newExecutor(func(m wire.Message) { _ = leader.Send(m) }) // the receiver notices a lost connection
		f.log.printf(info, "broker", "joined %s", f.names(0))
		f.begin()
	})
	for {
		m, err := leader.Receive()
		if err != nil {
			f.post(f.lose)
			return
		}
		f.post(func() { f.take(m) })
	}
}

// begin runs rc1, if there is one, and reports that it is done.
func (f *follower) begin() {
	if f.rc1 = newRC1(f.options.Attributes["broker.rc1_path"]); f.rc1 == nil {
		f.online()
		return
	}
	f.run(f.rc1, func(code int) {
		f.rc1 = nil
		if code == 0 {
			f.online()
			return
		}
		f.end()
		f.code = code
	})
}

func (f *follower) online() {
	_ = f.leader.Send(wire.Message{Type: wire.Online}) // the receiver notices a lost connection
}

func (f *follower) take(m wire.Message) {
	switch m.Type {
	case wire.Start:
		f.executor.start(m)
	case wire.Signal:
		f.executor.signal(m.Job, m.Signal)
	case wire.Shutdown:
		f.end()
	}
}

// lose is called when the connection to the leader ends without Shutdown.
func (f *follower) lose() {
	f.lost = true
	f.log.printf(fail, "overlay", "parent disconnected")
}

func (f *follower) signal(s os.Signal) {
	f.log.printf(info, "broker", "signal %d", s.(syscall.Signal))
	switch {
	case f.lost:
	case f.leader == nil:
		f.code, f.over = exitNotJoined, true
	case f.rc1 != nil:
		f.rc1.abort()
	default:
		_ = f.leader.Send(wire.Message{Type: wire.Goodbye}) // the connection may just have been lost
		f.end()
	}
}

// end ends the tasks, and then the broker.
func (f *follower) end() {
	f.executor.end(f.config.KillTimeout)
	f.code, f.over = exitJoined, true
}
