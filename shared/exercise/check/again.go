package check

import (
	"os"
	"os/exec"
)

// Again returns a command that starts this program once more, for a check of several processes. The variables, each NAME=value, say
// to Check what the new process is. What it reports is lost: only this process has results.
func (b *B) Again(variables ...string) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		b.Fatalf("finding the program: %v", err)
	}
	results, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatalf("opening %s: %v", os.DevNull, err)
	}
	b.Cleanup(func() { results.Close() })
	cmd := exec.CommandContext(b.Context(), program, os.Args[1:]...)
	cmd.Env = append(os.Environ(), variables...)
	cmd.ExtraFiles = []*os.File{results} // the first of them is ResultsFD
	return cmd
}
