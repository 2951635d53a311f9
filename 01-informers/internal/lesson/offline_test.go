package lesson_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/lesson"
)

func TestOfflineLessonNeedsNoCluster(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	program := lesson.Lesson{Name: "demo", Shows: "Shows nothing.", Offline: true}
	program.Run = func(_ context.Context, env *lesson.Env) {
		env.Printf("client: %v, namespace: %q\n", env.Client, env.Namespace)
	}
	g.Expect(runLesson(program)).To(Equal(ran{0, "client: <nil>, namespace: \"\"\n", ""}))
	g.Expect(runLesson(program, "--kubeconfig", "any")).To(Equal(
		ran{2, "", "demo: flag provided but not defined: -kubeconfig; --help lists the flags\n"}))
	g.Expect(runLesson(program, "--help")).To(Equal(
		ran{0, "Shows nothing.\n\nUsage: go run ./demo\n\nIt has no flags and needs no cluster.\n", ""}))

	program.Run = func(context.Context, *lesson.Env) { lesson.Must(0, errors.New("failed")) }
	g.Expect(runLesson(program)).To(Equal(ran{1, "", "demo: failed\n"}))
	program.Run = func(context.Context, *lesson.Env) { panic("a mistake") }
	g.Expect(func() { runLesson(program) }).To(PanicWith("a mistake"))
}
