package plugin

import (
	"fmt"

	"github.com/spf13/cobra"
)

// outputFlags are the flags for the format of the output.
type outputFlags struct {
	group, raw bool
	format     string
}

func (o *outputFlags) add(command *cobra.Command) {
	command.Flags().BoolVar(&o.group, "group", false,
		"show equal outputs once, at the end, with the workers that wrote them, apart by exit code; of each the first 1 MiB")
	command.Flags().BoolVar(&o.raw, "raw", false,
		"let output control the terminal; if unset, its control characters, as ESC, are shown there and not obeyed")
	o.addFormat(command)
}

func (o *outputFlags) addFormat(command *cobra.Command) {
	command.Flags().StringVarP(&o.format, "output", "o", "", "json: a JSON object in each line, for programs")
	fixed(command, "output", "json")
}

func (o *outputFlags) check() error {
	switch {
	case o.format != "" && o.format != "json":
		return usageError{fmt.Errorf("--output: %q is not known: the only format is json", o.format)}
	case o.format != "" && o.group:
		return usageError{fmt.Errorf("--group and --output exclude each other")}
	case o.group:
		return checkSpool()
	}
	return nil
}

// use configures a session for the flags.
func (o *outputFlags) use(s *session, c *console) {
	c.escapeOut = c.escapeOut && !o.raw
	switch {
	case o.format == "json":
		s.sink = &jsonSink{console: c}
	case o.group:
		s.sink = newGroupSink(c, s.names, s.notices)
	default:
		s.sink = &lineSink{console: c, names: s.names, notices: s.notices}
		s.live = true
	}
}
