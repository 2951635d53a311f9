package exercise

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/shared/exercise/check"
)

func TestALongRunSaysHowFarItIs(t *testing.T) {
	g := NewWithT(t)
	g.Expect(soFar(nil)).To(BeEmpty())
	lines := []check.Line{
		{Begin: "a Pod starts"}, {Behaviour: "a Pod starts", OK: true},
		{Begin: "it is ready"}, {Behaviour: "it is ready"},
		{Begin: "it ends"},
	}
	g.Expect(soFar(lines)).To(Equal("so far 1 there, 1 missed; now: it ends"))
	g.Expect(soFar(append(lines, check.Line{Behaviour: "it ends", OK: true}, check.Line{End: true}))).To(BeEmpty())
}

// The reader's code may end the process while the last line is on its way.
func TestARunThatFailsAfterItsEndDied(t *testing.T) {
	g := NewWithT(t)
	for status, died := range map[string]bool{"0": false, "2": true} {
		path := filepath.Join(t.TempDir(), "check.sh")
		script := "echo '{\"behaviour\":\"it is there\",\"ok\":true}' >&3\necho '{\"end\":true}' >&3\nexit " + status + "\n"
		g.Expect(os.WriteFile(path, []byte(script), 0o600)).To(Succeed())
		result, err := execute(t.Context(), execution{binary: "/bin/sh", target: target{key: path, dir: t.TempDir()}, limit: time.Minute})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.OK()).To(Equal(!died), "exit status %s: %+v", status, result)
	}
}
