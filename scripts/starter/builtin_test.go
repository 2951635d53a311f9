package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// aStage is one of Lolcow and of LolcowSetup, with the plugin or without.
func aStage(plugin bool) *stage {
	s := &stage{Resources: []resource{{Kind: "Lolcow"}, {Kind: "LolcowSetup"}}}
	if plugin {
		s.files = []string{"cmd/kubectl-lolcow/main.go"}
	}
	return s
}

// kubectl knows Kubernetes' own kinds and its own commands first: a copy's would never be shown, or called.
func TestWhatKubectlTakesAKindFor(t *testing.T) {
	tests := []struct {
		kind, want, ofPlugin string
	}{
		{"Teapot", "", ""},
		{"Podcast", "", ""},
		{"Joblet", "", ""},
		{"Job", "the Job", "the Job"},
		{"Secret", "the Secret", "the Secret"},
		{"Ingress", "the Ingress", "the Ingress"},
		{"StatefulSet", "the StatefulSet", "the StatefulSet"},
		{"Configmap", "the ConfigMap", "the ConfigMap"},
		{"Endpoint", "the Endpoints", "the Endpoints"},
		{"Deploy", "a short name", "a short name"},
		{"Po", "a short name", "a short name"},
		{"Drain", "", "kubectl drain is a command"},
		{"Debug", "", "kubectl debug is a command"},
		{"Cp", "", "kubectl cp is a command"},
		{"Explain", "", "kubectl explain is a command"},
	}
	for _, tt := range tests {
		for plugin, want := range map[bool]string{false: tt.want, true: tt.ofPlugin} {
			if got := kubectlTakes(aStage(plugin), tt.kind); want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("KIND=%s, with a plugin: %t: got %q, want %q", tt.kind, plugin, got, want)
			}
		}
	}
}

func TestOnlyStage4HasAPlugin(t *testing.T) {
	_ = os.Getenv("REPOSITORY_SUM") // so that Go's cache of results sees a change of these files
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range stageNumbers(repo) {
		s, err := findStage(t.Context(), repo, number)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.hasPlugin(); got != (number == "4") {
			t.Errorf("stage %s has a plugin: %t", number, got)
		}
	}
}

// A kubectl of this machine has no command that is missing here.
func TestBuiltinCommands(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("no kubectl in PATH")
	}
	cmd := exec.CommandContext(t.Context(), kubectl, "__complete", "")
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH="} // no plugins
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if word != "" && !strings.ContainsAny(word, "-:") && !slices.Contains(builtinCommands, word) {
			t.Errorf("kubectl has a command %s", word)
		}
	}
}

// A module that the stage requires cannot be the copy's.
func TestStarterRejectsAModuleThatTheStageRequires(t *testing.T) {
	repo := newRepo(t)
	file := filepath.Join(repo, "03-flux", "test", "e2e", "go.mod")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, string(content)+"\nrequire github.com/onsi/gomega v1.44.0\n")
	o := optionsFor(repo)
	o.Module = "github.com/onsi/gomega"
	if err := start(t, repo, o); err == nil || !strings.Contains(err.Error(), "test/e2e/go.mod requires the module of that name") {
		t.Errorf("got error %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(o.Dest)); err != nil || len(entries) > 0 {
		t.Errorf("it left %v, %v", entries, err)
	}
}
