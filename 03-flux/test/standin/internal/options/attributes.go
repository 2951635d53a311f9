package options

import (
	"fmt"
	"strings"

	"example.com/workbook/03-flux/test/standin/internal/words"
)

// rule says when an attribute may be set.
type rule int

const (
	always  rule = iota
	once         // a second -S of the same name is refused
	ownOnly      // the broker sets it itself
)

// rules are those of a broker's attributes that make sense for the stand-in. It acts on the first group, of the
// second it takes note, and any other it refuses, as a broker refuses what it has never heard of.
var rules = map[string]rule{
	"hostname":                once,
	"rundir":                  always,
	"statedir":                always,
	"local-uri":               once,
	"broker.quorum":           once,
	"broker.quorum-warn":      once,
	"broker.shutdown-timeout": once,
	"broker.rc1_path":         always,
	"tbon.connect_timeout":    always,
	"log-stderr-level":        always,
	"log-stderr-mode":         once,

	"broker.cleanup-timeout": always,
	"broker.shutdown-warn":   once,
	"log-level":              once,
	"log-forward-level":      once,
	"log-critical-level":     once,
	"tbon.tcp_user_timeout":  always,
	"tbon.zmqdebug":          always,

	"rank":       ownOnly,
	"size":       ownOnly,
	"version":    ownOnly,
	"hostlist":   ownOnly,
	"broker.pid": ownOnly,
}

// Attributes are a broker's settings, by name.
type Attributes map[string]string

// setFromCommandLine sets one from NAME=VALUE.
func (a Attributes) setFromCommandLine(setting string) error {
	name, value, _ := strings.Cut(setting, "=")
	r, known := rules[name]
	switch _, isSet := a[name]; {
	case !known:
		return fmt.Errorf("%s: unknown attribute", name)
	case r == ownOnly:
		return fmt.Errorf("%s: attribute may not be set on the command line", name)
	case r == once && isSet:
		return words.Errorf("%s: Operation not permitted", name)
	}
	a[name] = value
	return nil
}

// Get returns the value of an attribute, for a client; it fails as a lookup of a file does.
func (a Attributes) Get(name string) (string, error) {
	value, isSet := a[name]
	if !isSet {
		return "", words.Errorf("%s: No such file or directory", name)
	}
	return value, nil
}
