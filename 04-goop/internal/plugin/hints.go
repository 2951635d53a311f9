package plugin

import (
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hint returns a command of this program that the user may run next, quoted for a shell. It has the flags for cluster,
// namespace and user that this command was given, except secrets, which would appear in the logs of a pipeline.
func (a *app) hint(api *api, words ...string) string {
	command := []string{name}
	for _, word := range words {
		command = append(command, quoted(word))
	}
	if api.namespace != metav1.NamespaceDefault || a.global.Changed("namespace") {
		command = append(command, "-n", quoted(api.namespace))
	}
	a.global.VisitAll(func(flag *pflag.Flag) {
		switch {
		case !flag.Changed, flag.Name == "namespace", flag.Name == "token", flag.Name == "password":
			return
		case flag.NoOptDefVal != "":
			command = append(command, "--"+flag.Name+"="+quoted(flag.Value.String()))
			return
		}
		values := []string{flag.Value.String()}
		if several, ok := flag.Value.(pflag.SliceValue); ok {
			values = several.GetSlice()
		}
		for _, value := range values {
			command = append(command, "--"+flag.Name, quoted(value))
		}
	})
	return strings.Join(command, " ")
}

// harmless matches words that have no special meaning in any shell.
var harmless = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted quotes a word for a POSIX shell.
func quoted(word string) string {
	if harmless.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
