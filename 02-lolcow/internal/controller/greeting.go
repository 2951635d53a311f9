package controller

import "strings"

// greetingArgs turns a greeting into the arguments of the server's container. The kubelet expands
// $(NAME) in arguments and halves $$, so each $ is doubled; "--" keeps a greeting that begins with a
// dash from being read as an option. No shell sees any of it.
//
// Without a greeting "--" remains. With no arguments at all the field would not be applied, and not be
// owned: arguments that another writer has added would stay, with Ready=True.
func greetingArgs(greeting string) []string {
	if greeting == "" {
		return []string{"--"}
	}
	return []string{"--", strings.ReplaceAll(greeting, "$", "$$")}
}

// greetingFromArgs is the inverse of greetingArgs.
func greetingFromArgs(args []string) string {
	if len(args) != 2 {
		return ""
	}
	return strings.ReplaceAll(args[1], "$$", "$")
}
