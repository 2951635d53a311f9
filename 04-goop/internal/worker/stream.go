package worker

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// quiet is how long a pipe that another process still holds has to be silent until it is given up.
	quiet = 500 * time.Millisecond

	// maxRest is more than a pipe can hold: what comes after it was written when the command was over.
	maxRest = 1 << 20
)

// stream is a pipe from the command to the worker's own output.
type stream struct {
	read, write *os.File
	out         io.Writer
	tail        *tail

	mu    sync.Mutex
	ended bool
	done  chan struct{}
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

// copy passes on what it reads. If nobody takes it any longer, the command is not to notice: it is read all the same.
func (s *stream) copy() {
	defer close(s.done)
	buffer := make([]byte, 32<<10)
	broken := false
	for rest := 0; rest < maxRest; {
		ended := s.prepare()
		n, err := s.read.Read(buffer)
		s.tail.add(buffer[:n])
		if !broken && n > 0 {
			_, failed := s.out.Write(buffer[:n])
			broken = failed != nil
		}
		if err != nil {
			return
		}
		if ended {
			rest += n
		}
	}
}

// prepare tells whether the command is over. If so, the next read waits for a while only.
func (s *stream) prepare() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		_ = s.read.SetReadDeadline(time.Now().Add(quiet)) //nolint:forbidigo // a deadline of the operating system
	}
	return s.ended
}

// finish reads what is left when the command is over. A process that left the command's group and holds the pipe does
// not keep it from ending.
func (s *stream) finish() {
	_ = s.write.Close()
	s.mu.Lock()
	s.ended = true
	_ = s.read.SetReadDeadline(time.Now().Add(quiet)) //nolint:forbidigo // a deadline of the operating system
	s.mu.Unlock()
	<-s.done
}

// close gives both ends back, also those of a command that was not started.
func (s *stream) close() {
	_ = s.write.Close()
	_ = s.read.Close()
	<-s.done
}
