package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/workbook/shared/config"
)

func TestAnAPIServerOfAnotherVersionIsNamed(t *testing.T) {
	for version, want := range map[string]string{config.Get("KUBERNETES_VERSION"): "", "v1.27.1": "is Kubernetes v1.27.1"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "kube-apiserver"), []byte("#!/bin/sh\necho Kubernetes "+version+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		warnOfVersion(t.Context(), &out, dir)
		if want == "" && out.Len() > 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: got %q, want %q", version, out.String(), want)
		}
	}
}
