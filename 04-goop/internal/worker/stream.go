package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// patience is how long a pipe is read after the end of the command if another process still has it open, however often
	// that process writes.
	patience = 500 * time.Millisecond

	// maxRest is more than a pipe can hold: everything after it was written after the end of the command.
	maxRest = 1 << 20
)

// stream is a pipe from the command to the worker's own output.
type stream struct {
	read, write *os.File
	out         io.Writer
	tail        *tail

	// broken is set when the output can no longer be written.
	broken bool
	ended  atomic.Bool
	done   chan struct{}
}

func (w *Worker) stream(out io.Writer, output *tail) (*stream, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe for the command: %w", err)
	}
	s := &stream{read: read, write: write, out: out, tail: output, done: make(chan struct{})}
	go s.copy()
	return s, nil
}

// copy forwards what it reads. It continues to read after a write error, so that the command is not affected.
func (s *stream) copy() {
	defer close(s.done)
	buffer := make([]byte, 32<<10)
	for rest := 0; rest < maxRest; {
		n, err := s.read.Read(buffer)
		s.forward(buffer[:n])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.drain(buffer)
			return
		case err != nil:
			return
		case s.ended.Load():
			rest += n
		}
	}
}

// drain forwards what is in the pipe without waiting for more: the reader of the output may have been slower than the
// deadline.
func (s *stream) drain(buffer []byte) {
	_ = s.read.SetReadDeadline(time.Time{})
	raw, err := s.read.SyscallConn()
	if err != nil {
		return
	}
	for range maxRest / len(buffer) {
		n := 0
		failed := raw.Read(func(fd uintptr) bool {
			n, err = syscall.Read(int(fd), buffer)
			return true
		})
		if failed != nil || err != nil || n == 0 {
			return
		}
		s.forward(buffer[:n])
	}
}

func (s *stream) forward(output []byte) {
	s.tail.add(output)
	if !s.broken && len(output) > 0 {
		_, err := s.out.Write(output)
		s.broken = err != nil
	}
}

// finish reads the rest after the end of the command. A process outside the command's group may still have the pipe open,
// so the time for that is limited.
func (s *stream) finish() {
	_ = s.write.Close()
	s.ended.Store(true)
	_ = s.read.SetReadDeadline(time.Now().Add(patience)) //nolint:forbidigo // a deadline of the operating system
	<-s.done
}

// close closes both ends, including those of a command that was not started.
func (s *stream) close() {
	_ = s.write.Close()
	_ = s.read.Close()
	<-s.done
}
