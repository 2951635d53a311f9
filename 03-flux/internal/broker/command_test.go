package broker

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCommandIsGolden(t *testing.T) {
	cluster := example(func(c *Cluster) {
		c.Argv = []string{"printf", "%s\\n", "two words", "", "it's", "$HOME $(HOSTNAME) $$", "{{id}}", "new\nline", "-x", "żółć"}
	})
	expectGolden(t, "command.sh", cluster.Command())
}

// FuzzCommandArrives makes a shell run the script of some arguments, with printf as the command, which prints each
// argument with a terminator.
func FuzzCommandArrives(f *testing.F) {
	f.Add("a b", "")
	for i := range awkward {
		f.Add(awkward[i], awkward[len(awkward)-1-i])
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		if strings.Contains(first+second, "\x00") {
			t.Skip("the API server rejects it, because no program can have such an argument")
		}
		file := filepath.Join(t.TempDir(), CommandFile)
		script := Cluster{Argv: []string{"printf", `%s\000`, first, second}}.Command()
		must(t, os.WriteFile(file, []byte(script), 0o600))
		out, err := exec.CommandContext(t.Context(), "/bin/sh", file).Output()
		must(t, err)
		if got, want := strings.Split(string(out), "\x00"), []string{first, second, ""}; !slices.Equal(got, want) {
			t.Errorf("%q is passed as %q", want, got)
		}
	})
}
