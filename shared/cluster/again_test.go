package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"example.com/workbook/shared/binaries"
)

func TestAgain(t *testing.T) {
	t.Parallel()
	taken := errors.New("address already in use")
	for name, test := range map[string]struct {
		fails, starts int
		want          error
	}{
		"at once":                {0, 1, nil},
		"with the second port":   {1, 2, nil},
		"with the third":         {2, 3, nil},
		"never: it is no port's": {9, 3, taken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			starts := 0
			err := again(func() error {
				starts++
				if starts <= test.fails {
					return taken
				}
				return nil
			})
			if !errors.Is(err, test.want) || starts != test.starts {
				t.Errorf("%d starts and %v, not %d and %v", starts, err, test.starts, test.want)
			}
		})
	}
}

// An API server whose first start fails starts the second time, with a certificate and a CA that clients can use.
func TestAPIServerStartsTheSecondTime(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	installed, err := binaries.Ensure(t.Context(), os.Stdout, "etcd", "kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HARNESS_CACHE", t.TempDir())
	l, err := embeddedLayout("second")
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	failsOnce := "#!/bin/sh\nmkdir " + filepath.Join(programs, "started") + " 2>/dev/null && exit 1\nexec " + filepath.Join(installed, "kube-apiserver") + ` "$@"`
	if err := errors.Join(
		l.empty(),
		os.Symlink(filepath.Join(installed, "etcd"), filepath.Join(programs, "etcd")),
		os.WriteFile(filepath.Join(programs, "kube-apiserver"), []byte(failsOnce), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	p := &plane{layout: l, context: "second", binaries: programs}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := p.startEtcd(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.startAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.writeKubeconfig(t.Context()); err != nil {
		t.Fatal(err)
	}
	config, err := restConfig(l.kubeconfig(), "second")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listNodes(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}
