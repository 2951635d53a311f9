package faults

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// The API server asks an apply that creates an object for the permission to create, too.
func TestWhatAnApplyNeeds(t *testing.T) {
	role := filepath.Join(t.TempDir(), "role.yaml")
	if err := os.WriteFile(role, []byte("rules:\n- {apiGroups: [apps], resources: [deployments], verbs: [patch]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		contentType types.PatchType
		missing     bool
		want        []string
	}{
		"an apply that creates":   {types.ApplyYAMLPatchType, true, []string{"create apps deployments"}},
		"an apply that changes":   {types.ApplyYAMLPatchType, false, nil},
		"a patch creates nothing": {types.MergePatchType, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "https://example.com/apis/apps/v1/namespaces/a/deployments/b", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", string(test.contentType))
			p := &permissions{}
			p.note(parseRequest(r), test.missing)
			if got, err := p.lacking(role); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}
