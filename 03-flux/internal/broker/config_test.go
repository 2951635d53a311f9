package broker

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// example is a cluster as the controller creates it from the defaults, with the change of a test.
func example(change func(*Cluster)) Cluster {
	c := Cluster{
		Name: "hello-1", Service: "hello", Namespace: "lab", Size: 4, MinSize: 4, Tasks: 8, Cores: 2, Port: 8050, LogLevel: 3,
		ConnectTimeout: "5s",
	}
	change(&c)
	return c
}

// expectGolden compares text with a file in testdata, or writes the file if the tests run with -update.
func expectGolden(t *testing.T, file, text string) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("differs from %s, which `go test -update` rewrites:\n%s", file, text)
	}
}

func TestConfig(t *testing.T) {
	tests := map[string]struct {
		cluster Cluster
		golden  string

		port           int64
		connect        string
		connectTimeout string
		hosts, cores   string
	}{
		"one broker": {
			cluster: example(func(c *Cluster) { c.Size, c.MinSize, c.Tasks, c.Cores = 1, 1, 1, 1 }),
			golden:  "size-1.toml",
			port:    8050, connect: "tcp://%h.hello.lab.svc:%p", connectTimeout: "5s", hosts: "hello-1-0", cores: "0",
		},
		"four": {
			cluster: example(func(*Cluster) {}),
			golden:  "size-4.toml",
			port:    8050, connect: "tcp://%h.hello.lab.svc:%p", connectTimeout: "5s", hosts: "hello-1-[0-3]", cores: "0-1",
		},
		"two of four are enough": {
			cluster: example(func(c *Cluster) { c.MinSize = 2 }),
			golden:  "size-4.toml",
			port:    8050, connect: "tcp://%h.hello.lab.svc:%p", connectTimeout: "5s", hosts: "hello-1-[0-3]", cores: "0-1",
		},
		"a thousand, with unusual values": {
			cluster: example(func(c *Cluster) {
				c.Name, c.Service, c.Namespace, c.Size, c.MinSize, c.Tasks = "a-2-b3-9999", "a-2-b3", "team-9", 1000, 900, 100000
				c.Cores, c.Port, c.ConnectTimeout, c.LogLevel, c.Launcher = 112, 65535, "600s", 7, true
			}),
			golden: "size-1000.toml",
			port:   65535, connect: "tcp://%h.a-2-b3.team-9.svc:%p", connectTimeout: "600s", hosts: "a-2-b3-9999-[0-999]", cores: "0-111",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expectGolden(t, test.golden, test.cluster.Config())

			var got map[string]any
			if err := toml.Unmarshal([]byte(test.cluster.Config()), &got); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"bootstrap": map[string]any{
					"curve_cert":      "/flux/curve.cert",
					"default_port":    test.port,
					"default_bind":    "tcp://*:%p",
					"default_connect": test.connect,
					"hosts":           []any{map[string]any{"host": test.hosts}},
				},
				"tbon": map[string]any{"connect_timeout": test.connectTimeout},
				"exec": map[string]any{"kill-timeout": "1s"},
				"resource": map[string]any{
					"noverify": true,
					"config":   []any{map[string]any{"hosts": test.hosts, "cores": test.cores}},
				},
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("broker.toml says\n%v\nwant\n%v", got, want)
			}
		})
	}
}

// A change of any field must change the hash: it is in the status, and shows which files the brokers had.
func TestHash(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{64}$`)
	seen := map[string]string{}
	for name, change := range map[string]func(*Cluster){
		"nothing":        func(*Cluster) {},
		"Name":           func(c *Cluster) { c.Name = "other" },
		"Service":        func(c *Cluster) { c.Service = "other" },
		"Namespace":      func(c *Cluster) { c.Namespace = "other" },
		"Size":           func(c *Cluster) { c.Size = 5 },
		"MinSize":        func(c *Cluster) { c.MinSize = 3 },
		"Tasks":          func(c *Cluster) { c.Tasks = 9 },
		"Cores":          func(c *Cluster) { c.Cores = 3 },
		"Port":           func(c *Cluster) { c.Port = 8051 },
		"LogLevel":       func(c *Cluster) { c.LogLevel = 4 },
		"ConnectTimeout": func(c *Cluster) { c.ConnectTimeout = "6s" },
		"Launcher":       func(c *Cluster) { c.Launcher = true },
		"Argv":           func(c *Cluster) { c.Argv = []string{"hostname"} },
	} {
		hash := example(change).Hash()
		if again := example(change).Hash(); !form.MatchString(hash) || again != hash {
			t.Errorf("with a change of %s the hash is %q, and then %q", name, hash, again)
		}
		if other, taken := seen[hash]; taken {
			t.Errorf("a change of %s and of %s have the same hash", name, other)
		}
		seen[hash] = name
	}
	if fields := reflect.TypeFor[Cluster]().NumField(); len(seen) != fields+1 {
		t.Errorf("%d changes of the %d fields of Cluster are tested", len(seen)-1, fields)
	}
}

// Other containers might read an additional file.
func TestHashOfOtherFiles(t *testing.T) {
	c := example(func(*Cluster) {})
	if hash := HashOf(c.Files()); hash != c.Hash() {
		t.Errorf("the hash of its files is %q, and Hash returns %q", hash, c.Hash())
	}
	more := c.Files()
	more["more.toml"] = ""
	for name, files := range map[string]map[string]string{"none": nil, "one more": more} {
		if hash := HashOf(files); hash != "" {
			t.Errorf("%s: got %q", name, hash)
		}
	}
}
