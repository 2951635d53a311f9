package main

import (
	"net"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

func TestOutage(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	var o outage
	dial := func() (net.Conn, error) { return o.dial(t.Context(), "tcp", listener.Addr().String()) }
	connection, err := dial()
	g.Expect(err).NotTo(HaveOccurred())

	o.begin()
	_, err = connection.Read(make([]byte, 1))
	g.Expect(err).To(MatchError(net.ErrClosed))
	_, err = dial()
	g.Expect(err).To(MatchError(syscall.ECONNREFUSED))

	o.end()
	connection, err = dial()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(connection.Close()).To(Succeed())
}
