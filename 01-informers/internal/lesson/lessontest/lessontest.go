// Package lessontest has what the tests of the lessons share.
package lessontest

import (
	"io"
	"os"
	"testing"

	"github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

// Env returns what a lesson works with, in a namespace of its own. What the lesson prints is discarded.
func Env(tb testing.TB) *lesson.Env {
	tb.Helper()
	return &lesson.Env{
		Out: io.Discard, Config: testserver.Config(tb), Client: testserver.Client(tb), Namespace: testserver.Namespace(tb),
	}
}

// ExpectOutput runs a lesson and compares all that it prints with testdata/output.txt. After a change of the lesson,
// this command writes the new text: go run ./NAME >NAME/testdata/output.txt.
func ExpectOutput(tb testing.TB, program lesson.Lesson) {
	tb.Helper()
	out, err := testserver.Lesson(tb, program)
	if err != nil {
		tb.Fatalf("%v; it printed:\n%s", err, out)
	}
	want, err := os.ReadFile("testdata/output.txt")
	if err != nil {
		tb.Fatal(err)
	}
	gomega.NewWithT(tb).Expect(out).To(gomega.Equal(string(want)))
}
