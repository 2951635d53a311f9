// Package config reads broker.toml as a Flux broker does, but is stricter: it rejects unknown keys in every table,
// while a broker ignores them in some.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"example.com/workbook/03-flux/test/standin/internal/words"
)

const (
	defaultConnectTimeout = 30 * time.Second
	defaultKillTimeout    = 5 * time.Second
)

// Config is the configuration of the brokers. The file is the same for all of them.
type Config struct {
	// Hosts are in the order of their ranks.
	Hosts []Host
	// Rank is the rank of this broker's host.
	Rank int
	// Certificate is the path of curve.cert. It is optional for a single broker.
	Certificate string
	// ConnectTimeout is how long one attempt to connect to rank 0 may take.
	ConnectTimeout time.Duration
	// KillTimeout is how long tasks may take to end before they are killed.
	KillTimeout time.Duration
	// Cores are those declared for each rank; nil for the number of cores of the machine.
	Cores []int
	// Verify is set if a rank without the declared cores must not be used.
	Verify bool
}

// Host is one broker's host: it listens on Bind, and others connect to Connect.
type Host struct{ Name, Bind, Connect string }

// file is the content of broker.toml.
type file struct {
	Bootstrap *struct {
		Certificate string  `toml:"curve_cert"`
		Port        *int    `toml:"default_port"`
		Bind        string  `toml:"default_bind"`
		Connect     string  `toml:"default_connect"`
		IPv6        bool    `toml:"enable_ipv6"`
		Hosts       []entry `toml:"hosts"`
	} `toml:"bootstrap"`
	Overlay struct {
		ConnectTimeout string `toml:"connect_timeout"`
	} `toml:"tbon"`
	Exec struct {
		KillTimeout string `toml:"kill-timeout"`
	} `toml:"exec"`
	Resource struct {
		NoVerify bool       `toml:"noverify"`
		Config   []resource `toml:"config"`
	} `toml:"resource"`
}

type entry struct {
	Host    string `toml:"host"`
	Bind    string `toml:"bind"`
	Connect string `toml:"connect"`
}

type resource struct {
	Hosts string `toml:"hosts"`
	Cores string `toml:"cores"`
}

// Read reads the file at path for the broker of a host. An empty path stands for an empty file: a single broker.
func Read(path, hostname string) (*Config, error) {
	var f file
	if path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, words.Errorf("Config file error: %s: %v", path, words.System(err))
		}
		decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
		if err := decoder.Decode(&f); err != nil {
			return nil, readable(path, err)
		}
	}
	c := &Config{
		ConnectTimeout: defaultConnectTimeout, KillTimeout: defaultKillTimeout,
		Verify: !f.Resource.NoVerify,
	}
	if err := c.bootstrap(&f, hostname); err != nil {
		return nil, words.Errorf("bootstrap: Config file error [bootstrap]: %v", err)
	}
	if err := setDuration(&c.ConnectTimeout, f.Overlay.ConnectTimeout); err != nil {
		return nil, words.Errorf("Config file error parsing tbon.connect_timeout: %v", err)
	}
	if err := setDuration(&c.KillTimeout, f.Exec.KillTimeout); err != nil {
		return nil, words.Errorf("invalid kill-timeout: %s: %v", f.Exec.KillTimeout, err)
	}
	if err := c.resources(f.Resource.Config); err != nil {
		return nil, words.Errorf("error parsing [resource.config] array: %v", err)
	}
	return c, nil
}

// readable adds the table and key to an error of the decoder.
func readable(path string, err error) error {
	if missing, isMissing := errors.AsType[*toml.StrictMissingError](err); isMissing {
		key := missing.Errors[0].Key()
		return words.Errorf("Config file error [%s]: %s: unknown key %s", key[0], path, strings.Join(key, "."))
	}
	if decode, isDecode := errors.AsType[*toml.DecodeError](err); isDecode {
		row, _ := decode.Position()
		return words.Errorf("Config file error: %s:%d: %s: %v", path, row, strings.Join(decode.Key(), "."), err)
	}
	return words.Errorf("Config file error: %s: %v", path, err)
}

func setDuration(d *time.Duration, text string) error {
	if text == "" {
		return nil
	}
	value, err := Duration(text)
	if err == nil && value == 0 {
		err = errors.New("must be more than 0")
	}
	if err == nil {
		*d = value
	}
	return err
}

// bootstrap determines the ranks. Without hosts there is only one.
func (c *Config) bootstrap(f *file, hostname string) error {
	b := f.Bootstrap
	if b == nil || len(b.Hosts) == 0 {
		c.Hosts = []Host{{Name: hostname}}
		return nil
	}
	port := -1
	if b.Port != nil {
		if port = *b.Port; port < 0 || port > 65535 {
			return errors.New("default_port must be in the range of 0-65535")
		}
	}
	ranks := map[string]int{}
	for i, e := range b.Hosts {
		names, err := ExpandHosts(e.Host)
		if err != nil {
			return fmt.Errorf("invalid hosts[%d]: host key is %w", i, err)
		}
		for _, name := range names {
			host, err := newHost(name, or(e.Bind, b.Bind), or(e.Connect, b.Connect), port)
			if err != nil {
				return fmt.Errorf("invalid hosts[%d]: %w", i, err)
			}
			if _, twice := ranks[name]; !twice {
				ranks[name] = len(c.Hosts)
				c.Hosts = append(c.Hosts, host)
			}
		}
	}
	rank, listed := ranks[hostname]
	if !listed {
		return fmt.Errorf("%s not found in hosts", hostname)
	}
	if len(c.Hosts) > 1 && b.Certificate == "" {
		return errors.New("curve_cert must be defined for size > 1")
	}
	c.Rank, c.Certificate = rank, b.Certificate
	return nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// resources counts the cores of each rank.
func (c *Config) resources(list []resource) error {
	if len(list) == 0 {
		return nil
	}
	declared := map[string]int{}
	for i, r := range list {
		names, err := ExpandHosts(r.Hosts)
		if err != nil {
			return fmt.Errorf("config[%d]: hosts are %w", i, err)
		}
		cores, err := CountIDs(r.Cores)
		if err != nil {
			return fmt.Errorf("config[%d]: cores are %w", i, err)
		}
		for _, name := range names {
			declared[name] = cores
		}
	}
	if len(declared) != len(c.Hosts) {
		return words.Errorf("Number of hosts (%d) differs from node count (%d)", len(c.Hosts), len(declared))
	}
	for _, host := range c.Hosts {
		cores, found := declared[host.Name]
		if !found {
			return fmt.Errorf("no cores are declared for %s", host.Name)
		}
		c.Cores = append(c.Cores, cores)
	}
	return nil
}
