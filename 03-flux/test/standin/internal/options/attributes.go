package options

import (
	"fmt"
	"strings"

	"example.com/workbook/03-flux/test/standin/internal/words"
)

// rule defines when an attribute may be set.
type rule int

const (
	always  rule = iota
	once         // a second -S of the same name is rejected
	ownOnly      // the broker sets it itself
)

// rules are those of the broker attributes that make sense for the stand-in. It uses the first group, and ignores the
// second. It rejects all others, as a broker rejects unknown attributes.
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

// Attributes are the settings of a broker, by name.
type Attributes map[string]string

// setFromCommandLine sets an attribute from NAME=VALUE.
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

// Get returns the value of an attribute for a client. The error for an unknown one is that of a missing file.
func (a Attributes) Get(name string) (string, error) {
	value, isSet := a[name]
	if !isSet {
		return "", words.Errorf("%s: No such file or directory", name)
	}
	return value, nil
}
