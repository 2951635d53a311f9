package cluster

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// A cluster of the reader's own waits for no other, and two contexts of one cluster do for each other.
func TestAnExternalClusterHasItsOwnLock(t *testing.T) {
	t.Setenv("HARNESS_CACHE", t.TempDir())
	file := filepath.Join(t.TempDir(), "config")
	c := api.NewConfig()
	for name, server := range map[string]string{"one": "https://a.example.com", "two": "https://b.example.com", "Admin@one": "https://a.example.com"} {
		c.Clusters[name] = &api.Cluster{Server: server}
		c.Contexts[name] = &api.Context{Cluster: name}
	}
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for context := range c.Contexts {
		e, err := target(file, context, filepath.Join(t.TempDir(), "own"))
		if err != nil {
			t.Fatal(err)
		}
		names[context] = LockName(e)
	}
	if names["one"] == names["two"] || names["one"] != names["Admin@one"] {
		t.Errorf("got %v", names)
	}
	unlock, err := Share(t.Context(), t.Output(), names["one"], "make run")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	operator, err := LockStage(t.Context(), t.Output(), names["one"], "02-lolcow", "make run")
	if err != nil {
		t.Fatal(err)
	}
	if user := StageUser(names["one"], "02-lolcow"); !strings.HasPrefix(user, "make run (pid ") {
		t.Errorf("the operator is used by %q", user)
	}
	operator()
	if user := StageUser(names["one"], "02-lolcow"); user != "" {
		t.Errorf("the operator is used by %q, which has ended", user)
	}
}
