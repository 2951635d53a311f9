package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Debian 11 has 1.20. Fields that chapters use came later.
func TestAnOldKubectlIsNotUsed(t *testing.T) {
	for version, old := range map[string]bool{
		`"gitVersion": "v1.20.2"`: true, `"gitVersion": "v1.30.14+k3s1"`: true, `"gitVersion": "v1.31.0"`: false, `"gitVersion":"v1.37.0"`: false,
		`nothing`: false,
	} {
		assets, dir := t.TempDir(), t.TempDir()
		kubectl := filepath.Join(dir, "kubectl")
		if err := os.WriteFile(kubectl, []byte("#!/bin/sh\nprintf '%s' '{\"clientVersion\": {"+strings.ReplaceAll(version, "'", "")+"}}'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(assets, "kubectl"), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("HARNESS_CACHE", t.TempDir())
		t.Setenv("KUBEBUILDER_ASSETS", assets) // what the cache has in its place
		t.Setenv("PATH", dir+":/usr/bin:/bin")

		var out, errs bytes.Buffer
		cmd := newEnv()
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		cmd.SetContext(t.Context())
		if err := cmd.RunE(cmd, nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), `:"$PATH"`); got != old {
			t.Errorf("%s: another comes first: %t\n%s", version, got, out.String())
		}
		if got := strings.Contains(errs.String(), "they need 1.31 or later"); got != old {
			t.Errorf("%s: it was said: %t\n%s", version, got, errs.String())
		}
		f := checkKubectl(t.Context())
		if f.ok == old || strings.Contains(f.cost, "too old") != old {
			t.Errorf("%s: the doctor says %v", version, f)
		}
	}
}
