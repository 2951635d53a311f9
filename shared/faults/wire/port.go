package wire

import (
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
)

// port is a TCP port of the loopback interface that can be closed and opened again, and that no other process can take
// in between: a socket that is bound and does not listen keeps it. A client gets "connection refused".
type port struct {
	address string
	number  int

	mu       sync.Mutex
	bound    int // the socket that keeps the port; -1 while listener does
	listener net.Listener
	open     map[*connection]bool
}

var loopback = [4]byte{127, 0, 0, 1}

func newPort() (*port, error) {
	socket, err := bind(0)
	if err != nil {
		return nil, fmt.Errorf("binding a port: %w", err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		return nil, fmt.Errorf("binding a port: %w", err)
	}
	number := name.(*syscall.SockaddrInet4).Port
	return &port{address: fmt.Sprintf("127.0.0.1:%d", number), number: number, bound: socket, open: map[*connection]bool{}}, nil
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

// listen opens the port.
func (p *port) listen() (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := syscall.Listen(p.bound, syscall.SOMAXCONN); err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	file := os.NewFile(uintptr(p.bound), p.address)
	defer file.Close()
	p.bound = -1
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	p.listener = &tracker{Listener: listener, port: p}
	return p.listener, nil
}

// close closes all connections and the port, and keeps its number.
func (p *port) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeAll()
	socket, err := bind(p.number)
	if err != nil {
		return fmt.Errorf("keeping the port: %w", err)
	}
	p.bound = socket
	return nil
}

// release closes the port for good: other processes can take its number.
func (p *port) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeAll()
}

func (p *port) closeAll() {
	if p.bound >= 0 {
		syscall.Close(p.bound)
		p.bound = -1
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

// tracker is a listener that knows which of its connections are open.
type tracker struct {
	net.Listener
	port *port
}

func (t *tracker) Accept() (net.Conn, error) {
	conn, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	t.port.mu.Lock()
	defer t.port.mu.Unlock()
	if t.port.listener != t {
		conn.Close() // the port was closed meanwhile
		return nil, net.ErrClosed
	}
	tracked := &connection{Conn: conn, port: t.port}
	t.port.open[tracked] = true
	return tracked, nil
}

type connection struct {
	net.Conn
	port *port
}

func (c *connection) Close() error {
	defer func() {
		c.port.mu.Lock()
		defer c.port.mu.Unlock()
		delete(c.port.open, c)
	}()
	return c.Conn.Close()
}
