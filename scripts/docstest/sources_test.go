package docstest

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestSources checks every Go file that a document links to, here and in Kubernetes' libraries.
func TestSources(t *testing.T) {
	t.Parallel()
	library, err := NewLibrary("../../01-informers/go.mod", "../../02-lolcow/go.mod", "../../shared/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatal(documents, err)
	}
	for _, document := range documents {
		source, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, claim := range Sources(source) {
			if err := library.Check(t.Context(), filepath.Dir(document), claim); err != nil {
				t.Errorf("docs/%s: %v", filepath.Base(document), err)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	library, err := NewLibrary("../../01-informers/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	reflector := "https://github.com/kubernetes/client-go/blob/" + library.versions["k8s.io/client-go"] + "/tools/cache/reflector.go"
	for name, test := range map[string]struct{ text, err string }{
		"a file":                    {"[reflector](" + reflector + ")", ""},
		"a name in it":              {"[`handleAnyWatch`](" + reflector + ")", ""},
		"a method":                  {"[`Reflector.Run()`](" + reflector + ")", ""},
		"a name that is not in it":  {"[`handleEveryWatch`](" + reflector + ")", "there is no handleEveryWatch in it"},
		"a file that is not there":  {"[x](" + strings.Replace(reflector, "reflector.go", "reflectors.go", 1) + ")", "there is no such file"},
		"another version":           {"[x](https://github.com/kubernetes/client-go/blob/v0.30.0/tools/cache/reflector.go)", "the stages build with v"},
		"another library":           {"[x](https://github.com/kubernetes/none/blob/v0.30.0/x.go)", "is no library that the stages build with"},
		"a file of this repository": {"[`Check`](sources.go)", ""},
		"another site":              {"[`x`](https://go.dev/x.go)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			claims := Sources([]byte(test.text))
			if len(claims) != 1 {
				t.Fatalf("got %v", claims)
			}
			err := library.Check(t.Context(), ".", claims[0])
			if (err == nil) != (test.err == "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	claims := Sources([]byte("See [`Store` and `cache.Indexer`, `List[T]`, `a b`](x.go#L3)."))
	want := []Source{{Link: "x.go", Names: []string{"Store", "Indexer", "List"}}}
	if !reflect.DeepEqual(claims, want) {
		t.Errorf("got %+v", claims)
	}
}
