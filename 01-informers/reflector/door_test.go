package main

import (
	"bufio"
	"io"
	"net"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// echo is a server that says what it is told.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(connection, connection)
				_ = connection.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

func TestDoor(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	d, err := newDoor(t.Context(), echo(t))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(d.shut)
	dial := func() net.Conn {
		connection, err := d.dial(t.Context(), "tcp", "server.example.com:443")
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = connection.Close() })
		return connection
	}
	says := func(connection net.Conn) {
		_, err := io.WriteString(connection, "hello\n")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bufio.NewReader(connection).ReadString('\n')).To(Equal("hello\n"))
	}
	first := dial()
	says(first)

	d.shut()
	_, err = bufio.NewReader(first).ReadByte()
	g.Expect(err).To(HaveOccurred(), "what is open ends")
	_, err = d.dial(t.Context(), "tcp", "server.example.com:443")
	g.Expect(err).To(MatchError(syscall.ECONNREFUSED))
	d.shut() // Twice is fine.

	g.Expect(d.open(t.Context())).To(Succeed())
	says(dial())
}

// The client learns that there is nobody behind the door.
func TestDoorToNowhere(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listener.Close()).To(Succeed())
	d, err := newDoor(t.Context(), listener.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(d.shut)
	connection, err := d.dial(t.Context(), "tcp", "")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = connection.Read(make([]byte, 1))
	g.Expect(err).To(HaveOccurred())
}
