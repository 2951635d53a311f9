package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

func TestTargetRejectsExternalContexts(t *testing.T) {
	own := filepath.Join(t.TempDir(), ".kube", "config")
	external := filepath.Join(t.TempDir(), "config")
	c := api.NewConfig()
	for _, name := range []string{"production", "staging"} {
		c.Clusters[name] = &api.Cluster{Server: "https://" + name + ".example.com"}
		c.Contexts[name] = &api.Context{Cluster: name}
	}
	c.CurrentContext = "production"
	if err := clientcmd.WriteToFile(*c, external); err != nil {
		t.Fatal(err)
	}

	// The harness is called in its own folder, whose path has no links; a shell's may have some.
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(clientcmd.WriteToFile(*c, own), os.Symlink(filepath.Dir(filepath.Dir(own)), link)); err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		kubeconfig, allowed string
		want                string // host of the external cluster; empty for our own
		wantError           string
	}{
		"nothing set: our own":                   {"", "", "", ""},
		"our own file":                           {own, "", "", ""},
		"our own file, by a link":                {filepath.Join(link, ".kube", "config"), "", "", ""},
		"an external file":                       {external, "", "", `"production", which the harness did not make`},
		"an external file, allowed":              {external, "production", "https://production.example.com", ""},
		"another context of it, allowed":         {external, "staging", "https://staging.example.com", ""},
		"an external file, another name allowed": {external, "test", "", "ALLOW_CONTEXT=test: the kubeconfig has no such context"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := target(test.kubeconfig, test.allowed, own)
			if test.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantError) {
					t.Fatalf("got error %v, want one with %q", err, test.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				if got != nil {
					t.Fatalf("got the external cluster %s, want our own", got.Context())
				}
				return
			}
			cfg, err := got.RESTConfig()
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Host != test.want || got.Context() != test.allowed {
				t.Errorf("got %s at %s, want %s at %s", got.Context(), cfg.Host, test.allowed, test.want)
			}
		})
	}
}
