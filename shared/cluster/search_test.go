package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheAuditLogIsSearchedForAllTextsOrTheMark(t *testing.T) {
	dir := t.TempDir()
	for name, lines := range map[string]string{
		"audit-2026.log": "1 \"user\":\"a\" in b\n2 \"user\":\"a\"\n",
		"audit.log":      "3 in b\n4 the $mark\n5 \"user\":\"a\" in b\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"no text":   {[]string{"$mark"}, "1 2 3 4 5"},
		"one text":  {[]string{"$mark", "in b"}, "1 3 4 5"},
		"two texts": {[]string{"$mark", `"user":"a"`, "in b"}, "1 4 5"},
		"none":      {[]string{"other", "no such text"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			script := strings.Replace(searchScript(len(test.arguments)-1), auditLogDir, dir, 1)
			output, err := exec.CommandContext(t.Context(), "sh", append([]string{"-c", script, "sh"}, test.arguments...)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			var numbers []string
			for line := range strings.Lines(string(output)) {
				number, _, _ := strings.Cut(line, " ")
				numbers = append(numbers, number)
			}
			if got := strings.Join(numbers, " "); got != test.want {
				t.Errorf("got lines %s, want %s", got, test.want)
			}
		})
	}
}
