package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A broker that rejects its files or options exits with 1 at once, and prints the reason.
func TestRejections(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, in *instance)
		args    []string
		want    string
	}{
		"a certificate that the group can read":  {chmod("curve.cert", 0o640), nil, `Error loading certificate: .*/curve.cert: readable by group/other`},
		"a certificate that others can read":     {chmod("curve.cert", 0o604), nil, `readable by group/other`},
		"a certificate without a name":           {edit("curve.cert", ` +name.*\n`, ""), nil, `overlay_authorize: Invalid argument`},
		"an underscore in the name":              {edit("curve.cert", `"demo"`, `"de_mo"`), nil, `curve.cert: Invalid argument`},
		"another key in the certificate":         {edit("curve.cert", `secret-key`, "other-key"), nil, `curve.cert: Invalid argument`},
		"a key that is too short":                {edit("curve.cert", `key = "..`, `key = "`), nil, `curve.cert: Invalid argument`},
		"a character that Z85 lacks":             {edit("curve.cert", `key = "..`, `key = "~~`), nil, `curve.cert: Invalid argument`},
		"another section":                        {edit("curve.cert", `metadata`, "other"), nil, `curve.cert: Invalid argument`},
		"an entry that is not indented":          {edit("curve.cert", ` +name`, "name"), nil, `curve.cert: Invalid argument`},
		"keys that are no pair":                  {mismatch, nil, `curve.cert: Invalid argument`},
		"no certificate":                         {edit("broker.toml", `curve.cert"`, `none"`), nil, `none: No such file or directory`},
		"no certificate for more than one":       {edit("broker.toml", `curve_cert.*\n`, ""), nil, `curve_cert must be defined for size > 1`},
		"no file":                                {nil, []string{"--config-path=/none.toml"}, `/none.toml: No such file or directory`},
		"no TOML":                                {edit("broker.toml", `\[tbon\]`, "= tbon"), nil, `Config file error: .*broker.toml:7`},
		"an unknown key in [bootstrap]":          {edit("broker.toml", `default_port`, "odd = 1\ndefault_port"), nil, `\[bootstrap\].*odd`},
		"an unknown key of a host":               {edit("broker.toml", `\]" }`, `]", odd = 1 }`), nil, `\[bootstrap\].*odd`},
		"an unknown key in [resource]":           {edit("broker.toml", `noverify`, "odd = 1\nnoverify"), nil, `resource.*odd`},
		"an unknown key in [[resource.config]]":  {edit("broker.toml", `cores`, "odd = \"1\"\ncores"), nil, `resource.*odd`},
		"a port in quotes":                       {edit("broker.toml", `default_port = (\d+)`, `default_port = "8050"`), nil, `Config file error.*(string|default_port)`},
		"a port too high":                        {edit("broker.toml", `default_port = (\d+)`, `default_port = 80500`), nil, `default_port must be in the range of 0-65535`},
		"cores that are a number":                {edit("broker.toml", `cores = .*`, `cores = 2`), nil, `config.*(string|cores)`},
		"a time-out that is a number":            {edit("broker.toml", `kill-timeout = .*`, `kill-timeout = 1`), nil, `kill-timeout|\[exec\]`},
		"a time-out that is none":                {edit("broker.toml", `kill-timeout = .*`, `kill-timeout = "x"`), nil, `invalid kill-timeout: x`},
		"a connect time-out that is none":        {edit("broker.toml", `connect_timeout = .*`, `connect_timeout = "x"`), nil, `Config file error parsing tbon.connect_timeout`},
		"an underscore in a host":                {edit("broker.toml", `"demo-\[0-1\]" }`, `"demo_[0-1]" }`), nil, `invalid hosts\[0\]: demo_0 domain label`},
		"a broken list of hosts":                 {edit("broker.toml", `"demo-\[0-1\]" }`, `"demo-[0-" }`), nil, `invalid hosts\[0\]: host key is not a`},
		"a list without this host":               {edit("broker.toml", `"demo-\[0-1\]" }`, `"demo-[1-2]" }`), nil, `demo-0 not found in hosts`},
		"cores of fewer hosts":                   {edit("broker.toml", `"demo-\[0-1\]"\n`, "\"demo-0\"\n"), nil, `Number of hosts \(2\).*node count \(1\)`},
		"an unknown attribute":                   {nil, []string{"-Sno.such=1"}, `no.such: unknown attribute`},
		"an attribute that is the broker's own":  {nil, []string{"-Srank=1"}, `rank: attribute may not be set on the command line`},
		"an attribute that is set twice":         {nil, []string{"-Sbroker.quorum-warn=2s"}, `broker.quorum-warn: Operation not permitted`},
		"an unknown option":                      {nil, []string{"--odd"}, `(unrecognized option|unknown flag).*--odd`},
		"a quorum above the size":                {nil, []string{"-Sbroker.quorum=3"}, `Error parsing broker.quorum attribute`},
		"a quorum that is no number":             {nil, []string{"-Sbroker.quorum=x"}, `Error parsing broker.quorum attribute`},
		"a quorum-warn without a unit of its":    {setting("-Sbroker.quorum-warn=2x"), nil, `Error parsing broker.quorum-warn attribute`},
		"a rundir that cannot be made":           {nil, []string{"-Srundir=/none/run"}, `rundir error creating /none/run: No such file or directory`},
		"a rundir that may not be entered":       {folder("shut", 0o500), []string{"-Srundir=DIR/shut"}, `rundir .*/shut does not have owner=rwx permissions`},
		"a statedir that cannot be made":         {nil, []string{"-Sstatedir=/none/state"}, `statedir error creating /none/state: No such file or directory`},
		"a local-uri of another kind":            {nil, []string{"-Slocal-uri=ssh://host"}, `local-uri is malformed`},
		"a local-uri in a folder that is not":    {nil, []string{"-Slocal-uri=local:///none/local"}, `local-uri directory cannot stat /none: No such file or directory`},
		"a local-uri longer than a socket's may": {folder(strings.Repeat("x", 100), 0o700), []string{"-Slocal-uri=local://DIR/" + strings.Repeat("x", 100) + "/local"}, `local-uri length of \d+ bytes exceeds`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := newInstance(t, 2)
			if test.prepare != nil {
				test.prepare(t, in)
			}
			args := in.args(0, append(test.args, "true")...)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "DIR", in.dir)
			}
			p := start(t, args...)
			p.expectExit(t, 1)
			if got := p.stderr.String(); !regexp.MustCompile("(?i)" + test.want).MatchString(got) {
				t.Errorf("it prints\n%s\nwant %s", got, test.want)
			}
		})
	}
}

// A directory of another user is rejected even if it is writable, as it is for root here.
func TestDirectoriesOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	for attribute, path := range map[string]string{"rundir": "%s", "statedir": "%s", "local-uri": "local://%s/local"} {
		t.Run(attribute, func(t *testing.T) {
			in := newInstance(t, 2)
			other := in.path("other")
			if err := os.Mkdir(other, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(other, 12345, 12345); err != nil {
				t.Fatal(err)
			}
			p := in.start(t, 0, fmt.Sprintf("-S%s="+path, attribute, other), "true")
			p.expectExit(t, 1)
			p.await(t, &p.stderr, attribute+`.* `+other+` is not owned by instance owner`)
		})
	}
}

// Only the leader needs a name in the certificate, and only a leader has an initial program.
func TestWhatOnlyALeaderNeeds(t *testing.T) {
	in := newInstance(t, 2)
	p := in.start(t, 0)
	p.expectExit(t, 1)
	p.await(t, &p.stderr, `stdin is not a tty`)

	in.edit(t, "curve.cert", ` +name.*\n`, "")
	in.start(t, 1).expectAlive(t, time.Second)
}

// A single broker needs neither a certificate nor a file.
func TestSingleBroker(t *testing.T) {
	in := newInstance(t, 1)
	if err := os.Remove(in.path("curve.cert")); err != nil {
		t.Fatal(err)
	}
	in.edit(t, "broker.toml", `curve_cert.*\n`, "")
	p := in.start(t, 0, "sh", "-c", "echo $FLUX_URI; exit 3")
	p.expectExit(t, 3)
	if want := "local://" + in.path("run0/local-0") + "\n"; p.stdout.String() != want {
		t.Errorf("the initial program sees the URI %q, want %q", &p.stdout, want)
	}
	if _, err := os.Stat(in.path("run0")); !os.IsNotExist(err) {
		t.Errorf("the directory that the broker created still exists: %v", err)
	}

	alone := start(t, "broker", "-Srundir="+in.path("run"), "-Sstatedir="+in.path("state"), "true")
	alone.expectExit(t, 0)
}

func chmod(name string, mode os.FileMode) func(*testing.T, *instance) {
	return func(t *testing.T, in *instance) {
		t.Helper()
		if err := os.Chmod(in.path(name), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func edit(name, pattern, replacement string) func(*testing.T, *instance) {
	return func(t *testing.T, in *instance) { t.Helper(); in.edit(t, name, pattern, replacement) }
}

func setting(s string) func(*testing.T, *instance) {
	return func(_ *testing.T, in *instance) { in.settings = []string{s} }
}

func folder(name string, mode os.FileMode) func(*testing.T, *instance) {
	return func(t *testing.T, in *instance) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(in.dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// mismatch replaces the public key by that of another pair.
func mismatch(t *testing.T, in *instance) {
	t.Helper()
	public := regexp.MustCompile(`public-key = .*`)
	in.edit(t, "curve.cert", public.String(), public.FindString(newCertificate(t)))
}

// The stand-in prints that it is one.
func TestNotice(t *testing.T) {
	if os.Getenv("FLUX_PROGRAM") != "" {
		t.Skip("the real thing is no stand-in")
	}
	p := newInstance(t, 2).start(t, 1)
	p.await(t, &p.stderr, `stand-in`)
	p.await(t, &p.stderr, `no Flux`)
	p.signal(t, syscall.SIGTERM)
}

// rc1 is the start-up of a broker: a follower runs it once it has joined, and counts after it. This is how the
// entrypoint knows when a follower has joined.
func TestRC1(t *testing.T) {
	builtin := start(t, "config", "builtin", "rc1_path")
	builtin.expectExit(t, 0)
	rc1 := strings.TrimSpace(builtin.stdout.String())
	in := newInstance(t, 2)
	follower := in.start(t, 1, fmt.Sprintf("-Sbroker.rc1_path=%s && : >%s && while ! test -e %s; do sleep 0.1; done", rc1, in.path("joined"), in.path("go")))
	follower.expectAlive(t, time.Second)
	if _, err := os.Stat(in.path("joined")); !os.IsNotExist(err) {
		t.Errorf("the follower runs rc1 without a leader: %v", err)
	}
	leader := in.start(t, 0, "sh", "-c", "exit 3")
	in.awaitFile(t, "joined")
	leader.await(t, &leader.stderr, `quorum delayed: waiting for demo-1 \(rank 1\)`)
	in.write(t, "go", "")
	leader.expectExit(t, 3)
	follower.expectExit(t, 0)
}

// A broker whose rc1 fails ends with its exit code, both as leader and as follower. One that receives TERM
// meanwhile sends HUP to rc1.
func TestRC1Fails(t *testing.T) {
	in := newInstance(t, 2)
	leader := in.start(t, 0, "-Sbroker.rc1_path=echo on stderr >&2; exit 7", "true")
	leader.expectExit(t, 7)
	leader.await(t, &leader.stderr, `rc1\.0: on stderr`)
	leader.await(t, &leader.stderr, `rc1\.0: echo on stderr >&2; exit 7 Exited \(rc=7\)`)

	leader = in.start(t, 0, "true")
	in.start(t, 1, "-Sbroker.rc1_path=exit 8").expectExit(t, 8)
	follower := in.start(t, 1, "-Sbroker.rc1_path=: >"+in.path("begun")+"; exec sleep 300")
	in.awaitFile(t, "begun")
	follower.signal(t, syscall.SIGTERM)
	follower.expectExit(t, 128+1)
	leader.expectAlive(t, 0)
}
