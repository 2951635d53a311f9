package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"example.com/workbook/shared/engine"
)

func TestChoose(t *testing.T) {
	broken := errors.New("the engine is on fire")
	for name, test := range map[string]struct {
		wish      string
		engine    error
		up        []Kind
		want      Kind
		wantError string
	}{
		"kind by what the machine has":      {"", nil, nil, KindKind, ""},
		"embedded by what it lacks":         {"", engine.ErrNone, nil, KindEmbedded, ""},
		"embedded if it is up":              {"", nil, []Kind{KindEmbedded}, KindEmbedded, ""},
		"kind if both are up":               {"", nil, []Kind{KindEmbedded, KindKind}, KindKind, ""},
		"kind by hand beside embedded":      {"kind", nil, []Kind{KindEmbedded}, KindKind, ""},
		"an engine for others is no lack":   {"", engine.ErrDenied, nil, "", "usermod"},
		"a broken engine is not a lack":     {"", broken, nil, "", "on fire"},
		"kind by hand":                      {"kind", nil, nil, KindKind, ""},
		"kind by hand without an engine":    {"kind", engine.ErrNone, nil, "", "make engine"},
		"embedded by hand with an engine":   {"embedded", nil, nil, KindEmbedded, ""},
		"an unknown kind":                   {"k3s", nil, nil, "", "CLUSTER=k3s is unknown"},
		"external is not a kind to ask for": {"external", nil, nil, "", "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := choose(test.wish, func() error { return test.engine }, func(kind Kind) bool { return slices.Contains(test.up, kind) })
			if test.wantError == "" && err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if test.wantError != "" && (err == nil || !strings.Contains(err.Error(), test.wantError)) {
				t.Fatalf("got error %v, want one with %q", err, test.wantError)
			}
			if err == nil && got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"workbook": true, "a": true, "my-op2": true,
		"": false, "-a": false, "a-": false, "A": false, "a.b": false, "../x": false, "a b": false,
		strings.Repeat("a", 41): false,
	} {
		if err := checkName(name); (err == nil) != ok {
			t.Errorf("%q: got error %v, want ok=%v", name, err, ok)
		}
	}
}
