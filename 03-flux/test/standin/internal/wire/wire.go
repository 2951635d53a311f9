// Package wire is what the processes of the stand-in say to each other: the brokers over TCP, `flux run` and its
// broker over a socket in the file system.
package wire

import (
	"encoding/gob"
	"net"
	"sync"
	"syscall"
	"time"
)

// Type of a message.
type Type int

// Messages from a follower to the leader.
const (
	// Hello is the first: Rank, Cores.
	Hello Type = iota + 1
	// Online says that it is ready for tasks.
	Online
	// Goodbye is the last of a follower that means to end.
	Goodbye
	// Output is of one of the tasks: Job, Stream, Data.
	Output
	// Exit ends a task: Job, Task, Code; Signal if one killed it, Text if it could not be started.
	Exit
)

// Messages from the leader to a follower.
const (
	// Welcome answers Hello.
	Welcome Type = iota + 11
	// Start has the follower run Tasks of Job: Work.
	Start
	// Signal is for all tasks of Job: Signal.
	Signal
	// Shutdown ends the follower.
	Shutdown
)

// Messages between a client and its broker, on the same machine. A client sends Run, then Signal; or Get or List.
// The broker sends Output and Note, and Done or Value last.
const (
	// Run asks for a job: Work.
	Run Type = iota + 21
	// Get asks for the attribute Text.
	Get
	// List asks for a table of the resources.
	List
	// Note is a line for the client's standard error: Text.
	Note
	// Done ends a job: Code.
	Done
	// Value answers Get and List: Text; with a Code it is what is wrong.
	Value
)

// Work is what a task runs.
type Work struct {
	Args []string
	// Env and Dir are those of the client that asked for the job.
	Env []string
	Dir string
	// Nodes and Tasks are the sizes of the job; Nodes 0: as few as will do.
	Nodes, Tasks int
	// ExitTimeout is how long the others may run on after the first task has ended; 0: for ever.
	ExitTimeout time.Duration
}

// Stream is one of a task's two.
type Stream int

// The streams of a task.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// Message is all of the above; Type says which fields mean something.
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

// Conn sends and receives messages. Send may be called from everywhere, Receive from one place.
type Conn struct {
	conn    net.Conn
	mu      sync.Mutex
	encoder *gob.Encoder
	decoder *gob.Decoder
}

// New makes a connection one of messages.
func New(conn net.Conn) *Conn {
	return &Conn{conn: conn, encoder: gob.NewEncoder(conn), decoder: gob.NewDecoder(conn)}
}

// Send sends a message, and waits until the system has taken it.
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

// Close ends the connection; who waits on it is told.
func (c *Conn) Close() error { return c.conn.Close() }
