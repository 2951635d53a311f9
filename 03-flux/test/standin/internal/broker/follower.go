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

// Exit codes of a follower that is told to end by a signal.
const (
	exitJoined    = 0
	exitNotJoined = 1
)

// How long a follower waits between two attempts to join: twice as long each time.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = time.Second
)

// follower is any rank but 0.
type follower struct {
	*broker
	leader   *wire.Conn // nil until it has joined
	rc1      *program   // while it runs
	executor *executor
	code     int
	over     bool
	// lost is whether the leader went without a word. A broker then never ends by itself, nor by a signal.
	lost bool
}

// follow is the life of a follower.
func (b *broker) follow(signals <-chan os.Signal) int {
	f := &follower{broker: b}
	if _, err := b.prepare(); err != nil {
		return exitRefused
	}
	if err := b.serve(b.answerCommon); err != nil {
		b.log.printf(crit, "broker", "%v", err)
		return exitRefused
	}
	address, err := b.address("connect", b.config.Hosts[0].Connect)
	if err != nil {
		b.log.printf(crit, "overlay", "%v", err)
		return exitRefused
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

// connect tries to join until it succeeds. Like a broker it says nothing about why it does not.
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

// errRefused means that the leader does not want this rank now.
var errRefused = errors.New("the leader does not answer as one")

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
		return nil, errRefused
	}
	return wired, nil
}

// listen takes what the leader says, until it goes.
func (f *follower) listen(leader *wire.Conn) {
	f.post(func() {
		f.leader = leader
		f.executor = newExecutor(func(m wire.Message) { _ = leader.Send(m) }) // who listens will see
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

// begin runs rc1, if there is one, and says that it is done.
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
	_ = f.leader.Send(wire.Message{Type: wire.Online}) // who listens will see
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

// lose is called when the leader is gone without having sent Shutdown.
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
		_ = f.leader.Send(wire.Message{Type: wire.Goodbye}) // it may be lost just now
		f.end()
	}
}

// end ends the tasks and then the broker.
func (f *follower) end() {
	f.executor.end(f.config.KillTimeout)
	f.code, f.over = exitJoined, true
}
