package docstest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestOrderOfChapters(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ first, rotate, want string }{
		"as in the book":         {"", "", "01 02 03 04"},
		"what was touched first": {"03", "", "03 01 02 04"},
		"rotated":                {"", "6", "03 04 01 02"},
		"both":                   {"01|04", "1", "04 01 02 03"},
	} {
		l, err := readLimits(func(variable string) string {
			return map[string]string{"DOCS_FIRST": test.first, "DOCS_ROTATE": test.rotate}[variable]
		})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, chapter := range l.order([]Chapter{{Name: "01"}, {Name: "02"}, {Name: "03"}, {Name: "04"}}) {
			names = append(names, chapter.Name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestLimitsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for variable, value := range map[string]string{
		"DOCS_LANES": "0", "DOCS_ROTATE": "-1", "DOCS_UNTIL": "noon", "DOCS_FIRST": "(",
	} {
		_, err := readLimits(func(name string) string {
			if name == variable {
				return value
			}
			return ""
		})
		if err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s=%s: got the error %v", variable, value, err)
		}
	}
}

// Each of the two chapters waits for the other: one after the other they would not end.
func TestChaptersRunSideBySide(t *testing.T) {
	t.Parallel()
	meet := func(mine, other string) string {
		return "~sh\ntouch $PIDS." + mine + "\nuntil test -e $PIDS." + other + "; do sleep 0.1; done\necho $CLUSTER_NAME\n~\n"
	}
	b := newTryout(t, map[string]string{"01-x": meet("x", "y"), "02-y": meet("y", "x")})
	cmd := b.command(t)
	cmd.Env = append(cmd.Env, "DOCS_LANES=2")
	err := cmd.Run()
	out := b.read(t, b.out)
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if !regexp.MustCompile(`(?s)\n\s+01-x .*\n\s+02-y `).MatchString(out) {
		t.Errorf("the summary is not in the order of the book:\n%s", out)
	}
	clusters := strings.Fields(b.read(t, b.mark))
	if slices.Sort(clusters); !slices.Equal(clusters, []string{"book", "book-2"}) {
		t.Errorf("want the clusters of both deleted, got %q", clusters)
	}
}

// Where the time has expired, no chapter is begun, and the summary says so.
func TestChaptersWithoutTime(t *testing.T) {
	t.Parallel()
	b := newTryout(t, map[string]string{"01-x": "~sh\nfalse\n~\n", "02-y": "~sh\nfalse\n~\n"})
	cmd := b.command(t)
	cmd.Env = append(cmd.Env, "DOCS_UNTIL=1", "DOCS_FIRST=^02")
	err := cmd.Run()
	if out := b.read(t, b.out); err != nil || strings.Count(out, "NOT RUN, no time left\n") != 2 {
		t.Errorf("got %v:\n%s", err, out)
	}
}
