package plugin

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
)

// resourcePrefix is the prefix of the names that ls -o name prints.
const resourcePrefix = "goop.goop.example.com/"

// goopNames checks arguments that are names of Goops, also with the prefix that ls -o name prints. It validates all names
// before the command changes anything.
func goopNames(check cobra.PositionalArgs) cobra.PositionalArgs {
	return usage(func(command *cobra.Command, args []string) error {
		for i := range args {
			name := strings.TrimPrefix(args[i], resourcePrefix)
			if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
				return fmt.Errorf("%q is not a valid name of a Goop: %s", args[i], wrong[0])
			}
			args[i] = name
		}
		return check(command, args)
	})
}
