package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// whole is a file as the operator writes it.
const whole = `
[bootstrap]
curve_cert = "/flux/curve.cert"
default_port = 8050
default_bind = "tcp://*:%p"
default_connect = "tcp://%h.demo.ns.svc:%p"
hosts = [ { host = "demo-[0-2]" } ]
[tbon]
connect_timeout = "5s"
[exec]
kill-timeout = "1s"
[resource]
noverify = true
[[resource.config]]
hosts = "demo-[0-2]"
cores = "0-3"
`

// read reads a file with a content.
func read(t *testing.T, content, hostname string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "broker.toml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(path, hostname)
}

func TestRead(t *testing.T) {
	got, err := read(t, whole, "demo-1")
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Hosts: []Host{
			{"demo-0", "tcp://*:8050", "tcp://demo-0.demo.ns.svc:8050"},
			{"demo-1", "tcp://*:8050", "tcp://demo-1.demo.ns.svc:8050"},
			{"demo-2", "tcp://*:8050", "tcp://demo-2.demo.ns.svc:8050"},
		},
		Rank: 1, Certificate: "/flux/curve.cert", ConnectTimeout: 5 * time.Second, KillTimeout: time.Second, Cores: []int{4, 4, 4},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	address, err := Address(got.Hosts[0].Bind)
	if err != nil || address != ":8050" {
		t.Errorf("rank 0 would listen at %s, %v", address, err)
	}
}

// Without a file there is one broker, with the cores of the machine and the default time-outs.
func TestReadNothing(t *testing.T) {
	got, err := Read("", "here")
	want := &Config{Hosts: []Host{{Name: "here"}}, ConnectTimeout: 30 * time.Second, KillTimeout: 5 * time.Second, Verify: true}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// These are the tables in which a broker ignores an unknown key. Such a key is always a mistake.
func TestUnknownKeysEverywhere(t *testing.T) {
	for _, table := range []string{"[bootstrap]", "[tbon]", "[exec]", "[resource]", "[[resource.config]]"} {
		_, err := read(t, strings.Replace(whole, table+"\n", table+"\nodd = 1\n", 1), "demo-0")
		if err == nil || !strings.Contains(err.Error(), "unknown key "+strings.Trim(table, "[]")+".odd") {
			t.Errorf("a key in %s: got %v", table, err)
		}
	}
	if _, err := read(t, whole+"[odd]\nx = 1\n", "demo-0"); err == nil || !strings.Contains(err.Error(), "unknown key odd") {
		t.Errorf("a table: got %v", err)
	}
}

func TestAddress(t *testing.T) {
	for uri, want := range map[string]string{
		"tcp://127.0.0.1:80": "127.0.0.1:80", "tcp://*:80": ":80", "tcp://a.b:80": "a.b:80", "tcp://[::1]:80": "[::1]:80",
		"ipc://x": "", "127.0.0.1:80": "", "tcp://a": "", "tcp://a:-1": "", "tcp://a:*": "", "tcp://a:65536": "",
	} {
		got, err := Address(uri)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", uri, got, err, want)
		}
	}
}
