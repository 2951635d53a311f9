package faults

import (
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
)

// port is a TCP port of the loopback interface that can refuse connections and take them again, and is
// never free for anyone else in between: a socket that is bound and does not listen holds it, and the
// kernel refuses whoever connects.
type port struct {
	address string
	number  int

	mu       sync.Mutex
	held     int // the socket that holds the port; -1 while listener does
	listener net.Listener
	open     map[*noted]bool
}

var loopback = [4]byte{127, 0, 0, 1}

func newPort() (*port, error) {
	socket, err := bind(0)
	if err != nil {
		return nil, fmt.Errorf("taking a port: %w", err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		return nil, fmt.Errorf("taking a port: %w", err)
	}
	number := name.(*syscall.SockaddrInet4).Port
	return &port{address: fmt.Sprintf("127.0.0.1:%d", number), number: number, held: socket, open: map[*noted]bool{}}, nil
}

func bind(number int) (int, error) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	syscall.CloseOnExec(socket)
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return -1, err
	}
	return socket, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: loopback, Port: number})
}

// listen has the port take connections.
func (p *port) listen() (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := syscall.Listen(p.held, syscall.SOMAXCONN); err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	file := os.NewFile(uintptr(p.held), p.address)
	defer file.Close()
	p.held = -1
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	p.listener = &tracked{Listener: listener, port: p}
	return p.listener, nil
}

// refuse has it refuse connections, and breaks those that are open.
func (p *port) refuse() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
	socket, err := bind(p.number)
	if err != nil {
		return fmt.Errorf("holding the port: %w", err)
	}
	p.held = socket
	return nil
}

// release gives the port up.
func (p *port) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
}

func (p *port) close() {
	if p.held >= 0 {
		syscall.Close(p.held)
		p.held = -1
	}
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	for conn := range p.open {
		conn.Conn.Close()
	}
	clear(p.open)
}

// tracked notes the connections that it accepts.
type tracked struct {
	net.Listener
	port *port
}

func (t *tracked) Accept() (net.Conn, error) {
	conn, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	t.port.mu.Lock()
	defer t.port.mu.Unlock()
	if t.port.listener != t {
		conn.Close() // it came while the port was closing
		return nil, net.ErrClosed
	}
	connection := &noted{Conn: conn, port: t.port}
	t.port.open[connection] = true
	return connection, nil
}

type noted struct {
	net.Conn
	port *port
}

func (n *noted) Close() error {
	defer func() {
		n.port.mu.Lock()
		defer n.port.mu.Unlock()
		delete(n.port.open, n)
	}()
	return n.Conn.Close()
}
