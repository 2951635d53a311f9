package cluster

import (
	"errors"
	"strings"
	"testing"

	"example.com/workbook/shared/engine"
)

func TestChoose(t *testing.T) {
	broken := errors.New("the engine is on fire")
	for name, test := range map[string]struct {
		wish      string
		engine    error
		want      Kind
		wantError string
	}{
		"kind by what the machine has":     {"", nil, KindKind, ""},
		"embedded by what it lacks":        {"", engine.ErrNone, KindEmbedded, ""},
		"a broken engine is not a lack":    {"", broken, "", "on fire"},
		"kind by hand":                     {"kind", nil, KindKind, ""},
		"kind by hand without an engine":   {"kind", engine.ErrNone, "", "make engine"},
		"embedded by hand with an engine":  {"embedded", nil, KindEmbedded, ""},
		"an unknown kind":                  {"k3s", nil, "", "CLUSTER=k3s is unknown"},
		"foreign is not a kind to ask for": {"foreign", nil, "", "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := choose(test.wish, func() error { return test.engine })
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
