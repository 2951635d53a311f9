package broker

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func launcher(c *Cluster) { c.Launcher = true }

func TestEntrypointIsGolden(t *testing.T) {
	for golden, cluster := range map[string]Cluster{
		"submit.sh": example(func(*Cluster) {}),
		"submit-size-1000.sh": example(func(c *Cluster) {
			c.Size, c.MinSize, c.Tasks, c.Cores, c.LogLevel = 1000, 900, 100000, 112, 7
		}),
		"launcher.sh": example(launcher),
	} {
		t.Run(golden, func(t *testing.T) { expectGolden(t, golden, cluster.Entrypoint()) })
	}
}

// Each argument could be misinterpreted by one of the programs that it is passed to.
var awkward = []string{
	"command", "", " ", "two words", "  three  spaced words ", `"quoted"`, "it's", "`id`", "$HOME", "${HOME}", "$(HOSTNAME)",
	"$$", "$$(HOSTNAME)", "$(UNKNOWN)", "$", "new\nline", "\n", "tab\t", "żółć 日本 🐄", "-n", "--", "--help", "-N9", "*", "?", "[a-z]",
	"~", `back\slash`, `\n`, `\`, "a=b", "#", "!", "&", "|", ";", ">out", "%s", "{{.Name}}", "{{id}}", "''", "",
}

func TestCommandLines(t *testing.T) {
	// The broker's own part of the command line is always the same.
	options := func(c *container) []string {
		return []string{
			"flux", "broker",
			"--config-path=" + c.path("flux-config/broker.toml"),
			"-Srundir=" + c.path("flux/run"),
			"-Sstatedir=" + c.path("flux/state"),
			"-Slocal-uri=local://" + c.path("flux/run/local"),
			"-Sbroker.quorum=3",
			"-Sbroker.quorum-warn=15s",
			"-Sbroker.shutdown-timeout=10s",
			"-Slog-stderr-level=6",
			"-Slog-forward-level=6",
		}
	}
	inner := func(c *container) []string {
		return []string{"/bin/sh", "-c", ": >" + c.path("flux/ready") + `; exec "$@"`, "sh"}
	}
	joined := func(c *container) []string {
		return append(options(c), "-Sbroker.rc1_path=flux rc1 && : >"+c.path("flux/ready"))
	}
	script := func(c *container) []string { return []string{"/bin/sh", c.path("flux-config/command.sh")} }
	run := []string{"flux", "run", "-N3", "-n8", "-o", "cpu-affinity=off", "-o", "exit-timeout=none", "--"}
	submit := func(c *container) []string { return slices.Concat(run, script(c)) }
	tests := map[string]struct {
		rank     string
		launcher bool
		command  []string
		want     func(c *container) []string
		wantRun  func(c *container) []string
	}{
		"rank 0, Submit": {
			rank: "0", command: awkward,
			want:    func(c *container) []string { return slices.Concat(options(c), inner(c), submit(c)) },
			wantRun: submit,
		},
		"rank 0, Submit, one word": {
			rank: "0", command: []string{"command"},
			want:    func(c *container) []string { return slices.Concat(options(c), inner(c), submit(c)) },
			wantRun: submit,
		},
		"rank 0, Launcher": {
			rank: "0", launcher: true, command: awkward,
			want: func(c *container) []string { return slices.Concat(options(c), inner(c), script(c)) },
		},
		"rank 3":            {rank: "3", command: awkward, want: joined},
		"rank 10, Launcher": {rank: "10", launcher: true, command: awkward, want: joined},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			onEachShell(t, func(t shell) {
				c := t.newContainer(example(func(c *Cluster) { c.MinSize, c.LogLevel, c.Launcher = 3, 6, test.launcher }))
				c.env["JOB_COMPLETION_INDEX"] = test.rank
				c.start(test.command...)
				c.expectEnd(0)
				if got, want := recorded[[]string](c, "broker"), test.want(c); !slices.Equal(got, want) {
					t.Errorf("the broker was started with\n%q\nwant\n%q", got, want)
				}
				var wantRun []string
				if test.wantRun != nil {
					wantRun = test.wantRun(c)
				}
				if got := recorded[[]string](c, "run"); !slices.Equal(got, wantRun) {
					t.Errorf("flux run was started with\n%q\nwant\n%q", got, wantRun)
				}
				if want := test.command; test.rank == "0" {
					if got := recorded[[]string](c, "command"); !slices.Equal(got, want) {
						t.Errorf("the command is\n%q\nwant\n%q", got, want)
					}
				}
				if c.stderr.Len() > 0 {
					t.Errorf("its standard error has\n%s", &c.stderr)
				}
			})
		})
	}
}

func TestWhatTheBrokerFinds(t *testing.T) {
	onEachShell(t, func(t shell) {
		c := t.newContainer(example(launcher))
		c.start("command")
		c.expectEnd(0)

		certificate := c.path("flux", CertificateFile)
		info, err := os.Stat(certificate)
		must(t, err)
		if mode := info.Mode(); mode != 0o600 {
			t.Errorf("the certificate has the mode %v, which the broker rejects", mode)
		}
		if content, err := os.ReadFile(certificate); err != nil || string(content) != "the certificate" {
			t.Errorf("the certificate is %q, %v", content, err)
		}
		// The broker creates rundir and statedir itself, so that it owns them.
		if files := c.files(); files != "curve.cert ready" {
			t.Errorf("there are other files than the broker's: %s", files)
		}
	})
}

// Whatever the entrypoint calls its own variables, one that a user sets is the command's: it finds what the broker does.
func TestVariablesOfTheUserAreKept(t *testing.T) {
	onEachShell(t, func(t shell) {
		for _, rank := range []string{"0", "1"} {
			t.Run("rank "+rank, func(t shell) {
				c := t.newContainer(example(launcher))
				c.env["JOB_COMPLETION_INDEX"] = rank
				for _, name := range []string{"broker", "code", "rc1", "signal", "stop", "stopped"} {
					c.env[name] = "the user's"
				}
				c.start("command")
				c.expectEnd(0)
				environment := recorded[[]string](c, "environment")
				for name, value := range c.env {
					if !slices.Contains(environment, name+"="+value) {
						t.Errorf("the broker's environment has no %s=%s", name, value)
					}
				}
			})
		}
	})
}

// When a pod is ready: rank 0 when its command starts, the others when they have joined.
func TestReady(t *testing.T) {
	onEachShell(t, func(t shell) {
		tests := map[string]struct {
			rank, broker, rc1 string
			want              bool
		}{
			"rank 0, its command started":  {rank: "0", want: true},
			"rank 0, which ends before":    {rank: "0", broker: "exit 0"},
			"rank 1, joined":               {rank: "1", want: true},
			"rank 1, which ends before":    {rank: "1", broker: "exit 0"},
			"rank 1, whose start-up fails": {rank: "1", rc1: "exit 7"},
		}
		for name, test := range tests {
			t.Run(name, func(t shell) {
				c := t.newContainer(example(launcher))
				c.env["JOB_COMPLETION_INDEX"], c.env["BROKER"] = test.rank, test.broker
				if test.rc1 != "" {
					c.env["RC1"] = test.rc1
				}
				c.start("command")
				code := c.end()
				if got := exists(c.paths().ReadyFile); got != test.want {
					t.Errorf("after the end with %d it was ready: %v, want %v; standard error:\n%s", code, got, test.want, &c.stderr)
				}
				if recorded[bool](c, "rc1") {
					t.Error("it was ready before it had joined")
				}
				if got := recorded[bool](c, "ready"); test.rank == "0" && got != test.want {
					t.Errorf("it was ready when its command began: %v", got)
				}
			})
		}
	})
}

func TestExitCode(t *testing.T) {
	onEachShell(t, func(t shell) {
		for broker, want := range map[string]int{
			"exit 0": 0, "exit 1": 1, "exit 3": 3, "exit 127": 127, "exit 139": 139, "exit 143": 143, "signal SEGV": 139, "signal KILL": 137,
		} {
			t.Run(broker, func(t shell) {
				c := t.newContainer(example(func(*Cluster) {}))
				c.env["BROKER"] = broker
				c.start("command")
				c.expectEnd(want)
			})
		}
		t.Run("a launched command that does not exist", func(t shell) {
			c := t.newContainer(example(launcher))
			c.start("no-such-command")
			c.expectEnd(127)
			if !strings.Contains(c.stderr.String(), "no-such-command") {
				t.Errorf("its standard error does not name it:\n%s", &c.stderr)
			}
		})
	})
}

func TestImageWithoutFlux(t *testing.T) {
	onEachShell(t, func(t shell) {
		c := t.newContainer(example(func(*Cluster) {}))
		must(t, os.Remove(c.path("bin", "flux")))
		c.start("command")
		c.expectEnd(127)
		want := "entrypoint.sh: no program flux in PATH (" + c.path("bin") + "): the image must contain Flux (flux-core)\n"
		if got := c.stderr.String(); got != want {
			t.Errorf("its standard error is\n%swant\n%s", got, want)
		}
		if files := c.files(); files != "" {
			t.Errorf("it is ready, or has created files: %s", files)
		}
	})
}

func TestContainerThatLacksSomething(t *testing.T) {
	onEachShell(t, func(t shell) {
		tests := map[string]struct {
			lacks func(c *container)
			want  string
		}{
			"the certificate": {func(c *container) { must(t, os.Remove(c.path("flux-secret", CertificateFile))) }, CertificateFile},
			"install":         {func(c *container) { must(t, os.Remove(c.path("bin", "install"))) }, "install"},
			"a rank":          {func(c *container) { delete(c.env, "JOB_COMPLETION_INDEX") }, "JOB_COMPLETION_INDEX"},
			"rc1":             {func(c *container) { c.env["JOB_COMPLETION_INDEX"], c.env["RC1"] = "1", "" }, "rc1_path"},
		}
		for name, test := range tests {
			t.Run(name, func(t shell) {
				c := t.newContainer(example(func(*Cluster) {}))
				test.lacks(c)
				c.start("command")
				if code := c.end(); code == 0 || recorded[[]string](c, "broker") != nil {
					t.Errorf("the exit code is %d, and the broker was started with %q", code, recorded[[]string](c, "broker"))
				}
				if !strings.Contains(c.stderr.String(), test.want) {
					t.Errorf("its standard error does not name %s:\n%s", test.want, &c.stderr)
				}
			})
		}
	})
}
