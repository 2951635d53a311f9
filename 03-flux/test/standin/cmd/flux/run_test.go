package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Each rank runs its share of the tasks, in the leader's environment, and the leader prints all output.
func TestTasks(t *testing.T) {
	in := newInstance(t, 3)
	t.Setenv("GREETING", "a  b")
	brokers := in.startAll(t, "flux", "run", "-N3", "-n5", "-o", "cpu-affinity=off", "--", "sh", "-c",
		`echo "$FLUX_TASK_RANK $FLUX_TASK_LOCAL_ID $FLUX_JOB_SIZE $FLUX_JOB_NNODES $GREETING"; echo "e $FLUX_TASK_RANK" >&2`)
	for _, broker := range brokers {
		broker.expectExit(t, 0)
	}
	lines := strings.Split(strings.TrimSpace(brokers[0].stdout.String()), "\n")
	slices.Sort(lines)
	want := []string{"0 0 5 3 a  b", "1 1 5 3 a  b", "2 0 5 3 a  b", "3 1 5 3 a  b", "4 0 5 3 a  b"}
	if !slices.Equal(lines, want) {
		t.Errorf("the leader printed %q, want %q", lines, want)
	}
	for task := range 5 {
		brokers[0].await(t, &brokers[0].stderr, fmt.Sprintf(`(?m)^e %d$`, task))
	}
	for rank, broker := range brokers[1:] {
		if broker.stdout.String() != "" {
			t.Errorf("rank %d printed %q", rank+1, &broker.stdout)
		}
	}
}

// The job shell expands the names that it knows between two braces, and that cannot be disabled: this is why the
// entrypoint has the command in a file.
func TestTags(t *testing.T) {
	in := newInstance(t, 2)
	brokers := in.startAll(t, "flux", "run", "-N2", "-n2", "echo", "{{taskid}} of {{size}}", "{{foo}}", "{{ size }}")
	for _, broker := range brokers {
		broker.expectExit(t, 0)
	}
	lines := strings.Split(strings.TrimSpace(brokers[0].stdout.String()), "\n")
	slices.Sort(lines)
	if want := []string{"0 of 2 {{foo}} {{ size }}", "1 of 2 {{foo}} {{ size }}"}; !slices.Equal(lines, want) {
		t.Errorf("the leader printed %q, want %q", lines, want)
	}
}

// The exit code of the leader is the highest one of the tasks; followers always end with 0.
func TestExitCodes(t *testing.T) {
	tests := map[string]struct {
		run    []string
		code   int
		stderr string
	}{
		"success":                         {[]string{"-N2", "-n2", "true"}, 0, ""},
		"one rank fails":                  {[]string{"-N2", "-n2", "sh", "-c", "exit $((FLUX_TASK_RANK * 7))"}, 7, `task\(s\) exited with exit code 7`},
		"the highest counts":              {[]string{"-N2", "-n4", "sh", "-c", "exit $((4 - FLUX_TASK_RANK))"}, 4, `exit code 4`},
		"killed":                          {[]string{"-N2", "-n2", "sh", "-c", "kill -SEGV $$"}, 139, `task\(s\) Segmentation fault`},
		"not found":                       {[]string{"-N2", "-n2", "no-such-command", "a"}, 127, `start failed: no-such-command: No such file or directory`},
		"an empty name":                   {[]string{"-N2", "-n2", ""}, 127, `start failed: : No such file or directory`},
		"not executable":                  {[]string{"-N2", "-n2", "/usr"}, 126, `start failed: /usr: Permission denied`},
		"a command like an option":        {[]string{"-N2", "-n2", "--", "-x"}, 127, `start failed: -x: No such file or directory`},
		"fewer tasks than nodes":          {[]string{"-N2", "-n1", "true"}, 1, `node count must not be greater than task count`},
		"more nodes than there are":       {[]string{"-N3", "-n3", "true"}, 1, `unsatisfiable request: need 3 node\(s\) with 1 cores each, only 2 eligible`},
		"more tasks than cores":           {[]string{"-N2", "-n8", "true"}, 1, `unsatisfiable request: need 2 node\(s\) with 4 cores each, only 0 eligible`},
		"more tasks than cores, anywhere": {[]string{"-n5", "true"}, 1, `unsatisfiable request: need 5 slot`},
		"no command":                      {[]string{"-N2", "-n2"}, 1, `job command and arguments are missing`},
		"no nodes":                        {[]string{"-N0", "-n2", "true"}, 1, `must be an integer >= 1`},
		"an unknown option":               {[]string{"--odd", "true"}, 2, `--odd`},
		"one task outlives the others":    {[]string{"-N2", "-n2", "-o", "exit-timeout=100ms", "sh", "-c", "test $FLUX_TASK_RANK = 1 || exec sleep 100; exit 3"}, 3, `exit-timeout=(100ms|0.1s) has expired`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newInstance(t, 2)
			brokers := in.startAll(t, append([]string{"flux", "run"}, test.run...)...)
			brokers[0].expectExit(t, test.code)
			brokers[1].expectExit(t, 0)
			if test.stderr != "" {
				brokers[0].await(t, &brokers[0].stderr, test.stderr)
			}
			if test.code != 0 {
				brokers[0].await(t, &brokers[0].stderr, fmt.Sprintf(`rc2\.0: flux run .*\(rc=%d\)`, test.code))
			}
		})
	}
}

// The initial program need not be `flux run`: its exit code is that of the broker.
func TestInitialProgram(t *testing.T) {
	tests := map[string]struct {
		program []string
		code    int
		stderr  string
	}{
		"its code":       {[]string{"sh", "-c", "exit 3"}, 3, `rc2.0: sh -c exit 3 Exited \(rc=3\)`},
		"killed":         {[]string{"sh", "-c", "kill -SEGV $$"}, 139, `Segmentation fault \(rc=139\)`},
		"not found":      {[]string{"no-such-command", "a"}, 127, `No such file or directory \(rc=127\)`},
		"not executable": {[]string{"/usr", "a"}, 126, `Permission denied \(rc=126\)`},
		"several jobs":   {[]string{"sh", "-c", "flux run -N1 -n1 false; flux run -N1 -n2 true && exit 5"}, 5, `exited with exit code 1`},
		"no broker":      {[]string{"sh", "-c", "FLUX_URI=local:///none flux run -N1 -n1 true"}, 1, `broker socket /none was not found`},
		"an attribute":   {[]string{"sh", "-c", "test $(flux getattr size) = 1 && test $(flux getattr hostlist) = demo-0 && exit 6"}, 6, ""},
		"resources":      {[]string{"sh", "-c", "flux resource list >&2; exit 7"}, 7, `free +1 +2 +0 demo-0`},
		"no attribute":   {[]string{"flux", "getattr", "no.such"}, 1, `no.such: No such file or directory`},
		"no command":     {[]string{"flux", "no-such"}, 1, "`no-such' is not a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newInstance(t, 1).start(t, 0, test.program...)
			p.expectExit(t, test.code)
			if test.stderr != "" {
				p.await(t, &p.stderr, test.stderr)
			}
		})
	}
}

// No shell expands the command: it is passed as it is.
func TestArguments(t *testing.T) {
	args := []string{
		"a b", " ", "", `"`, "'", `\`, `\\n`, "$HOME", "$(HOSTNAME)", "$$", "`id`", "*", "a\nb", "\t", "Grüße, 世界",
		"-n", "--", "-", "{}", "%s", ";", "&", "#",
	}
	want := ""
	for _, arg := range args {
		want += "[" + arg + "]"
	}
	in := newInstance(t, 2)
	in.settings = append(in.settings, "-Sbroker.quorum=2")
	// The last rank prints the arguments, so they have been passed through all processes.
	brokers := in.startAll(t, append([]string{
		"flux", "run", "-N2", "-n2", "--", "sh", "-c", `test $FLUX_TASK_RANK = 0 || printf '[%s]' "$@"`, "sh",
	}, args...)...)
	brokers[0].expectExit(t, 0)
	if got := brokers[0].stdout.String(); got != want {
		t.Errorf("received\n%q, sent\n%q", got, want)
	}
}

// All output is passed on, in whole lines, with or without a newline at the end.
func TestMuchOutput(t *testing.T) {
	const each = 20000
	in := newInstance(t, 2)
	brokers := in.startAll(t, "flux", "run", "-N2", "-n4", "--", "sh", "-c",
		fmt.Sprintf(`i=0; while [ $i -lt %d ]; do echo "$FLUX_TASK_RANK $i"; i=$((i+1)); done; printf "$FLUX_TASK_RANK end"`, each))
	brokers[0].expectExit(t, 0)
	next := map[string]int{}
	for line := range strings.Lines(brokers[0].stdout.String()) {
		for _, part := range splitEnds(line) {
			task, text, _ := strings.Cut(strings.TrimSuffix(part, "\n"), " ")
			if text == "end" {
				continue
			}
			if want := fmt.Sprint(next[task]); text != want {
				t.Fatalf("task %s printed %q, want %s next", task, text, want)
			}
			next[task]++
		}
	}
	for _, task := range []string{"0", "1", "2", "3"} {
		if next[task] != each {
			t.Errorf("of task %s %d lines were received, want %d", task, next[task], each)
		}
	}
	if ends := strings.Count(brokers[0].stdout.String(), "end"); ends != 4 {
		t.Errorf("%d last lines without a newline were received, want 4", ends)
	}
}

// splitEnds splits a line that begins with the ends of other outputs, which have no newline.
func splitEnds(line string) []string {
	var parts []string
	for {
		end := strings.Index(line, " end")
		if end < 0 {
			break
		}
		parts = append(parts, line[:end+4])
		line = line[end+4:]
	}
	if line != "" {
		parts = append(parts, line)
	}
	return parts
}
