package plugin

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// redrawEvery is the minimum time between two updates of the progress line.
const redrawEvery = 200 * time.Millisecond

// noticeWithin is how long print waits for a notice to be written, so that notices and output stay in order if the reader
// does not pause.
const noticeWithin = 200 * time.Millisecond

const (
	eraseLine = "\r\x1b[K"
	red       = "\x1b[31m"
	plain     = "\x1b[0m"
)

// console is where the program writes: the output of workers to out, and its own messages to err. If err is a terminal,
// it also has a progress line below everything else.
type console struct {
	out, err io.Writer

	// colourOut and colourErr enable colours, and redraw the progress line on err.
	colourOut, colourErr, redraw bool

	// escapeOut: the output of workers is escaped, because out is a terminal that it could control.
	escapeOut bool

	width func() int

	// outLock guards out, and errLock guards err and the progress line. If both are terminals they are the same lock,
	// because the line is on the screen that out writes to. Otherwise a goroutine that waits for out does not block writes
	// to err.
	outLock, errLock *sync.Mutex
	shared           bool
	drawn            string

	// One goroutine writes the notices, so that a paused reader of err does not block the session. The callers limit their
	// number: see notices.
	noticesLock sync.Mutex
	notices     []string
	written     <-chan struct{} // closed when all are written; nil: there are none
}

func newConsole(streams genericiooptions.IOStreams) *console {
	c := &console{out: streams.Out, err: streams.ErrOut, errLock: &sync.Mutex{}, outLock: &sync.Mutex{}}
	colour := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	_, outIsTerminal := terminal(streams.Out)
	c.colourOut, c.escapeOut = outIsTerminal && colour, outIsTerminal
	if file, ok := terminal(streams.ErrOut); ok && os.Getenv("TERM") != "dumb" {
		c.redraw = true
		c.colourErr = colour
		c.width = func() int {
			width, _, err := term.GetSize(int(file.Fd()))
			if err != nil || width <= 0 {
				return 80
			}
			return width
		}
	}
	if c.redraw && outIsTerminal {
		c.outLock, c.shared = c.errLock, true
	}
	return c
}

func terminal(stream any) (*os.File, bool) {
	file, ok := stream.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// Write writes output of workers. It gets whole lines, so that those of several workers do not mix.
func (c *console) Write(lines []byte) (int, error) {
	c.outLock.Lock()
	defer c.outLock.Unlock()
	if c.shared {
		c.erase()
	}
	n, err := c.out.Write(lines)
	if err != nil {
		return n, outputError{fmt.Errorf("writing the output: %w", err)}
	}
	return n, nil
}

// say prints a message in a line of its own.
func (c *console) say(format string, args ...any) { c.print("goop: "+format, args...) }

// fail prints why the program ends, in kubectl's format.
func (c *console) fail(format string, args ...any) { c.print("error: "+format, args...) }

// print writes a text that may contain parts from the cluster or from a worker. It is escaped, so that it can neither
// control a terminal nor imitate a message of the program.
func (c *console) print(format string, args ...any) {
	text := strings.ReplaceAll(escaped(fmt.Sprintf(format, args...)), "\n", "\n  ")
	c.noticesLock.Lock()
	c.notices = append(c.notices, text)
	if c.written != nil {
		c.noticesLock.Unlock()
		return
	}
	written := make(chan struct{})
	c.written = written
	c.noticesLock.Unlock()
	go c.writeNotices(written)
	select {
	case <-written:
	case <-time.After(noticeWithin):
	}
}

// writeNotices writes notices until there are no more.
func (c *console) writeNotices(written chan<- struct{}) {
	defer close(written)
	for {
		c.noticesLock.Lock()
		if len(c.notices) == 0 {
			c.written = nil
			c.noticesLock.Unlock()
			return
		}
		text := c.notices[0]
		c.notices = c.notices[1:]
		c.noticesLock.Unlock()
		c.errLock.Lock()
		c.erase()
		fmt.Fprintln(c.err, text)
		c.errLock.Unlock()
	}
}

// flush waits until all notices are written. After the end of the context it waits only a moment longer.
func (c *console) flush(ctx context.Context) {
	c.noticesLock.Lock()
	written := c.written
	c.noticesLock.Unlock()
	if written == nil {
		return
	}
	select {
	case <-written:
		return
	case <-ctx.Done():
	}
	select {
	case <-written:
	case <-time.After(settleWithin):
	}
}

// shown returns the output of a worker as it is written to out.
func (c *console) shown(output []byte) []byte {
	if !c.escapeOut {
		return output
	}
	return []byte(escaped(string(output)))
}

// erase erases the progress line until it is drawn again.
func (c *console) erase() {
	if c.drawn != "" {
		fmt.Fprint(c.err, eraseLine)
		c.drawn = ""
	}
}

// showProgress draws a line of progress, on a terminal, until the function that it returns is called.
func (c *console) showProgress(line func() string) (stop func()) {
	if !c.redraw {
		return func() {}
	}
	var drawing sync.WaitGroup
	end := make(chan struct{})
	drawing.Go(func() {
		ticker := time.NewTicker(redrawEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.draw(line())
			case <-end:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(end)
		drawing.Wait()
		c.errLock.Lock()
		defer c.errLock.Unlock()
		c.erase()
	})
}

func (c *console) draw(line string) {
	c.errLock.Lock()
	defer c.errLock.Unlock()
	// A line as wide as the terminal would be wrapped, and only one of its two parts erased.
	if characters := []rune(line); len(characters) >= c.width() {
		line = string(characters[:max(0, c.width()-1)])
	}
	if line == c.drawn || line == "" {
		return
	}
	fmt.Fprint(c.err, eraseLine+c.coloured(line))
	c.drawn = line
}

// coloured makes failures red, because users look for them.
func (c *console) coloured(line string) string {
	if !c.colourErr {
		return line
	}
	return failedPart.ReplaceAllString(line, red+"$0"+plain)
}
