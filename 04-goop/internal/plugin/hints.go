package plugin

import (
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hint is a command of this program that the user may run next, quoted for a shell. It has the flags that this one was
// given to find its cluster, namespace and user, but for secrets: those would end up in the logs of a pipeline.
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

// harmless is a word that means itself to every shell.
var harmless = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted is a word as a POSIX shell has to be given it.
func quoted(word string) string {
	if harmless.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
