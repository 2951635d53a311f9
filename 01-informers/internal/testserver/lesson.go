package testserver

import (
	"bytes"
	"context"
	"flag"
	"io"
	"testing"
	"time"

	"example.com/workbook/01-informers/internal/lesson"
)

// patience is how long a program may take in a test. Each says that it takes about 10 s at most; several
// test packages at once on two cores are slower.
const patience = 90 * time.Second

// Lesson runs a program's Run in a namespace of its own, with flags as a reader would type them, and
// returns what it printed. A lesson that is offline gets neither namespace nor server.
func Lesson(tb testing.TB, program lesson.Lesson, args ...string) (string, error) {
	tb.Helper()
	flags := flag.NewFlagSet(program.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if program.Flags != nil {
		program.Flags(flags)
	}
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	world := &lesson.World{Out: &out}
	if !program.Offline {
		world.Config, world.Client, world.Namespace = Config(tb), Client(tb), Namespace(tb)
	}
	err := program.Run(ctx, world)
	return out.String(), err
}
