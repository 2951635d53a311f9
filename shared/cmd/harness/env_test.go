package main

import (
	"os/exec"
	"strings"
	"testing"
)

func TestQuoteSurvivesTheShell(t *testing.T) {
	for _, text := range []string{"/plain", "/with space", "it's", `"$HOME"`, "a;b|c", "`id`", "new\nline", ""} {
		output, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+quote(text)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if string(output) != text {
			t.Errorf("%q became %q", text, output)
		}
	}
}

func TestEveryCommandSaysWhatItIsFor(t *testing.T) {
	for _, command := range newRoot().Commands() {
		if command.Short == "" || strings.HasSuffix(command.Short, ".") {
			t.Errorf("%s: want one line without a full stop, got %q", command.Name(), command.Short)
		}
	}
}
