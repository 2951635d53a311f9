package plugin

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// redrawEvery is how often the progress line is drawn anew, at most.
const redrawEvery = 200 * time.Millisecond

const (
	eraseLine = "\r\x1b[K"
	red       = "\x1b[31m"
	plain     = "\x1b[0m"
)

// console is where the program writes: the output of workers to out, and what it has to say itself to err. On a
// terminal err also has a line of progress below all else.
type console struct {
	out, err io.Writer

	// colourOut and colourErr say whether colours are wanted there; redraw, whether err has a line of progress.
	colourOut, colourErr, redraw bool

	// escapeOut says whether the output of workers is escaped: out is a terminal, and is not to obey it.
	escapeOut bool

	width func() int

	// outLock guards out, errLock guards err and the line. Where both are terminals they are one lock, as the
	// line is on the screen that out writes to. Where out is anything else, one who waits for it keeps nobody
	// from writing to err.
	outLock, errLock *sync.Mutex
	shared           bool
	drawn            string
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

// Write writes output of workers: whole lines, so that those of several do not mix.
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

// say tells the reader something, in a line of its own.
func (c *console) say(format string, args ...any) { c.print("goop: "+format, args...) }

// fail tells the reader why the program ends, in kubectl's way.
func (c *console) fail(format string, args ...any) { c.print("error: "+format, args...) }

// print writes a text that the cluster or a worker may have had a part in: it neither controls a terminal nor forges a
// line of the program.
func (c *console) print(format string, args ...any) {
	text := strings.ReplaceAll(escaped(fmt.Sprintf(format, args...)), "\n", "\n  ")
	c.errLock.Lock()
	defer c.errLock.Unlock()
	c.erase()
	fmt.Fprintln(c.err, text)
}

// shown is output of a worker as it is to be written to out.
func (c *console) shown(output []byte) []byte {
	if !c.escapeOut {
		return output
	}
	return []byte(escaped(string(output)))
}

// erase takes the line of progress away until it is drawn again.
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
	// A line that is as wide as the terminal would be broken in two, and only one erased.
	if characters := []rune(line); len(characters) >= c.width() {
		line = string(characters[:max(0, c.width()-1)])
	}
	if line == c.drawn || line == "" {
		return
	}
	fmt.Fprint(c.err, eraseLine+c.coloured(line))
	c.drawn = line
}

// coloured makes failures red: they are what one looks for.
func (c *console) coloured(line string) string {
	if !c.colourErr {
		return line
	}
	return failedPart.ReplaceAllString(line, red+"$0"+plain)
}
