package plugin

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// A hint is a command that can be pasted into a shell. It uses the same cluster, namespace and user as this command.
func TestHintsRepeatTheFlagsThatWereGiven(t *testing.T) {
	g, f := NewWithT(t), newFake(t)
	f.operator(func(goop string) { f.end(goop, 0) })
	odd := filepath.Join(t.TempDir(), "it's my config")
	text, err := os.ReadFile(f.kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(odd, text, 0o600)).To(Succeed())

	r := runProgram(t, odd, "run", "-n", "test", "--context", "other", "--as", "me", "--as-group", "a", "--as-group", "b c",
		"--insecure-skip-tls-verify", "--token", "secret", "--keep", "--", "true")
	g.Expect(r.code).To(Equal(0), r.err)
	quoted := `'` + filepath.Dir(odd) + `/it'\''s my config'`
	g.Expect(r.err).To(Equal("goop: the Goop " + f.name() + " is created and will be kept: kubectl goop logs " + f.name() +
		" -n test --as me --as-group a --as-group 'b c' --context other --insecure-skip-tls-verify=true --kubeconfig " + quoted + "\n"))
}

// Without --namespace the namespace comes from the kubeconfig, which may change.
func TestHintsNameTheNamespace(t *testing.T) {
	for namespace, want := range map[string]string{"": " -n test", "test": " -n test", "default": " -n default"} {
		t.Run(namespace, func(t *testing.T) {
			g, f := NewWithT(t), newFake(t)
			a := &app{flags: newFlags(), streams: streamsTo(&buffer{})}
			root := a.command()
			args := []string{"--kubeconfig", f.kubeconfig}
			if namespace != "" {
				args = append(args, "--namespace", namespace)
			}
			g.Expect(root.ParseFlags(args)).To(Succeed())
			api, err := a.connect()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.hint(api, "ls")).To(Equal("kubectl goop ls" + want + " --kubeconfig " + quoted(f.kubeconfig)))
		})
	}
}

func TestHintsAreQuotedForAShell(t *testing.T) {
	for word, want := range map[string]string{
		"plain-1.2/x:y@z=w,+%": "plain-1.2/x:y@z=w,+%",
		"":                     "''",
		"two words":            "'two words'",
		"$HOME":                "'$HOME'",
		"it's":                 `'it'\''s'`,
		"~/x":                  "'~/x'",
		"a;b":                  "'a;b'",
		"ä":                    "'ä'",
	} {
		if got := quoted(word); got != want {
			t.Errorf("%q becomes %s, not %s", word, got, want)
		}
	}
}
