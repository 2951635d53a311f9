// Package options reads the command line of `flux broker`.
package options

import (
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"example.com/workbook/03-flux/test/standin/internal/config"
	"example.com/workbook/03-flux/test/standin/internal/words"
)

// Options are the options of a broker.
type Options struct {
	Attributes Attributes
	// ConfigPath is the path of broker.toml; empty if there is none.
	ConfigPath string
	// Program is the initial program and its arguments.
	Program  []string
	Hostname string
	Log      Log
}

// Log defines which messages a broker writes to its standard error.
type Log struct {
	// Level is the highest level that is written, as a syslog number.
	Level int
	// Local is set if a follower writes messages too: otherwise only the leader does.
	Local bool
}

// Timing are the options of the leader. They are checked once the broker is known to be the leader.
type Timing struct {
	// Quorum is the number of ranks that are the quorum.
	Quorum int
	// QuorumWarn is how often the missing ranks are logged; 0: never.
	QuorumWarn time.Duration
	// ShutdownTimeout is how long the leader waits for followers to end; negative: forever.
	ShutdownTimeout time.Duration
}

// Parse parses the arguments after `flux broker`.
func Parse(args []string) (*Options, error) {
	o := &Options{Attributes: Attributes{}, Log: Log{Level: 3}}
	flags := pflag.NewFlagSet("flux-broker", pflag.ContinueOnError)
	flags.SetInterspersed(false)
	flags.SetOutput(io.Discard)
	settings := flags.StringArrayP("setattr", "S", nil, "")
	flags.StringVarP(&o.ConfigPath, "config-path", "c", "", "")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	o.Program = flags.Args()
	for _, setting := range *settings {
		if err := o.Attributes.setFromCommandLine(setting); err != nil {
			return nil, err
		}
	}
	return o, o.complete()
}

func (o *Options) complete() (err error) {
	var isSet bool
	if o.Hostname, isSet = o.Attributes["hostname"]; !isSet {
		if o.Hostname, err = os.Hostname(); err != nil {
			return words.Errorf("gethostname: %v", words.System(err))
		}
		o.Attributes["hostname"] = o.Hostname
	}
	if level, isSet := o.Attributes["log-stderr-level"]; isSet {
		if o.Log.Level, err = strconv.Atoi(level); err != nil || o.Log.Level < 0 || o.Log.Level > 7 {
			return words.Error("log-stderr-level: invalid value")
		}
	}
	switch mode := o.Attributes["log-stderr-mode"]; mode {
	case "", "leader":
	case "local":
		o.Log.Local = true
	default:
		return words.Error("log-stderr-mode: invalid value")
	}
	return nil
}

// Timing reads the leader's attributes, for an instance of a number of ranks.
func (o *Options) Timing(size int) (t Timing, err error) {
	t.Quorum = size
	if text, isSet := o.Attributes["broker.quorum"]; isSet {
		if t.Quorum, err = strconv.Atoi(text); err != nil || t.Quorum < 1 || t.Quorum > size {
			return t, words.Error("Error parsing broker.quorum attribute")
		}
	}
	o.Attributes["broker.quorum"] = strconv.Itoa(t.Quorum)
	if t.QuorumWarn, err = o.duration("broker.quorum-warn", time.Minute, 0); err != nil {
		return t, err
	}
	t.ShutdownTimeout, err = o.duration("broker.shutdown-timeout", -1, -1)
	return t, err
}

// duration parses a duration that may be "none".
func (o *Options) duration(name string, missing, none time.Duration) (time.Duration, error) {
	switch text, isSet := o.Attributes[name]; {
	case !isSet:
		return missing, nil
	case text == "none":
		return none, nil
	default:
		d, err := config.Duration(text)
		if err != nil {
			return 0, words.Errorf("Error parsing %s attribute", name)
		}
		return d, nil
	}
}

// ConnectTimeout is the attribute of that name if it is set, or else the value in the file.
func (o *Options) ConnectTimeout(file time.Duration) (time.Duration, error) {
	return o.duration("tbon.connect_timeout", file, file)
}
