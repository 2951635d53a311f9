// Package wire defines the messages between the processes of the stand-in: between brokers over TCP, and between `flux
// run` and its broker over a Unix socket.
package wire

import (
	"encoding/gob"
	"net"
	"sync"
	"syscall"
	"time"
)

// Type is the type of a message.
type Type int

// Messages from a follower to the leader.
const (
	// Hello is the first message: Rank, Cores.
	Hello Type = iota + 1
	// Online reports that the rank is ready for tasks.
	Online
	// Goodbye is the last message of a follower that is ending.
	Goodbye
	// Output is the output of one of the tasks: Job, Stream, Data.
	Output
	// Exit reports the end of a task: Job, Task, Code; Signal if one killed it, Text if it could not be started.
	Exit
)

// Messages from the leader to a follower.
const (
	// Welcome is the response to Hello.
	Welcome Type = iota + 11
	// Start requests a follower to run Tasks of Job: Work.
	Start
	// Signal is a signal for all tasks of Job: Signal.
	Signal
	// Shutdown requests the follower to end.
	Shutdown
)

// Messages between a client and its broker, on the same machine. A client sends Run, then Signal; or Get or List. The
// broker sends Output and Note, and at the end Done or Value.
const (
	// Run requests a job: Work.
	Run Type = iota + 21
	// Get requests the attribute Text.
	Get
	// List requests a table of the resources.
	List
	// Note is a line for the client's standard error: Text.
	Note
	// Done reports the end of a job: Code.
	Done
	// Value is the response to Get and List: Text; with a Code, Text is an error.
	Value
)

// Work is what a task runs.
type Work struct {
	Args []string
	// Env and Dir are those of the client that requested the job.
	Env []string
	Dir string
	// Nodes and Tasks are the sizes of the job; Nodes 0: as few as possible.
	Nodes, Tasks int
	// ExitTimeout is how long the other tasks may run after the first one has ended; 0: forever.
	ExitTimeout time.Duration
}

// Stream is one of the two streams of a task.
type Stream int

// The streams of a task.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// Message is any of these messages; Type defines which fields are used.
type Message struct {
	Type   Type
	Rank   int
	Cores  int
	Job    int
	Task   int
	Tasks  []int
	Stream Stream
	Data   []byte
	Code   int
	Signal syscall.Signal
	Text   string
	Work   *Work
}

// Conn sends and receives messages. Send may be called concurrently, Receive from one goroutine only.
type Conn struct {
	conn    net.Conn
	mu      sync.Mutex
	encoder *gob.Encoder
	decoder *gob.Decoder
}

// New returns a Conn for a connection.
func New(conn net.Conn) *Conn {
	return &Conn{conn: conn, encoder: gob.NewEncoder(conn), decoder: gob.NewDecoder(conn)}
}

// Send sends a message, and waits until the system has accepted it.
func (c *Conn) Send(m Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.encoder.Encode(m)
}

// Receive waits for the next message.
func (c *Conn) Receive() (Message, error) {
	var m Message
	err := c.decoder.Decode(&m)
	return m, err
}

// Close closes the connection; a waiting Receive returns an error.
func (c *Conn) Close() error { return c.conn.Close() }
