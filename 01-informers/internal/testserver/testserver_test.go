package testserver_test

import (
	"context"
	"flag"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestLessonParsesFlagsAndHasADeadline(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var pods int
	program := lesson.Lesson{
		Name:  "demo",
		Flags: func(flags *flag.FlagSet) { flags.IntVar(&pods, "pods", 1, "") },
		Run: func(ctx context.Context, env *lesson.Env) error {
			_, hasDeadline := ctx.Deadline()
			g.Expect(hasDeadline).To(BeTrue(), "a lesson that hangs fails its test")
			env.Printf("%d pods\n", pods)
			return env.CreatePods(ctx, "a")
		},
	}
	g.Expect(testserver.Lesson(t, program, "--pods", "3")).To(Equal("3 pods\n"))
	_, err := testserver.Lesson(t, program, "--nope")
	g.Expect(err).To(HaveOccurred())
}
