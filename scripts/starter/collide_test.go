package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A new name may be that of a local variable elsewhere; where it would mean two things, the copy would not build.
func TestWhatANewNameCollidesWith(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing": {map[string]string{"a.go": "func newFlux(flux string) string { return flux }"}, ""},
		"a local variable elsewhere": {map[string]string{
			"a.go": "func newFlux(flux string) string { return flux }\nfunc count() int { index := 1; return index }",
		}, ""},
		"a field of another struct": {map[string]string{"a.go": "type Flux struct{}\ntype page struct{ Index int }"}, ""},
		"what stands behind a dot": {map[string]string{
			"a.go": "type page struct{ index int }\nfunc turn(flux page) page { flux.index++; return page{index: flux.index} }",
		}, ""},
		"a local variable beside it":       {map[string]string{"a.go": "func f(flux, index string) {}"}, "index is used in a.go"},
		"a field beside it":                {map[string]string{"a.go": "type page struct{ Flux, Index int }"}, "Index is used in a.go"},
		"a declaration of the package":     {map[string]string{"a.go": "type Flux struct{}", "b.go": "type Index struct{}"}, "Index is used in b.go"},
		"a declaration of another package": {map[string]string{"a.go": "type Flux struct{}", "c/b.go": "type Index struct{}"}, ""},
		"a package that the file imports":  {map[string]string{"a.go": "import \"example.org/index\"\nfunc f(flux string) string { return index.Of(flux) }"}, "index is used in a.go"},
		"an import beside a declaration":   {map[string]string{"a.go": "import \"example.org/index\"\nvar x = index.All", "b.go": "var flux = 1"}, "index is used in b.go"},
		"a field beside a method": {map[string]string{
			"a.go": "type page struct{ index int }", "b.go": "func (p *page) flux() {}\nfunc (o other) index() {}",
		}, "index is used in b.go"},
		"a method of another type":              {map[string]string{"a.go": "func (p page) flux() {}\nfunc (o other) index() {}"}, ""},
		"a composed name":                       {map[string]string{"a.go": "func newFlux() {}\nfunc newIndex() {}"}, "newIndex is used in a.go"},
		"the name of another thing in YAML":     {map[string]string{"a.yaml": "metadata:\n  name: index\n"}, "index is used in a.yaml"},
		"a field in YAML":                       {map[string]string{"a.yaml": "index:\n- 1\n"}, ""},
		"what is made anew, such as a property": {map[string]string{"config/crd/bases/a.yaml": "x: index\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) { collide(t, "Index", test.files, test.want) })
	}
}

// go test takes files and functions for tests by their names.
func TestAKindCalledTest(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"the kind's own file":   {map[string]string{"flux.go": "type Flux struct{}", "flux_test.go": "func TestFlux() {}"}, ""},
		"a file that would be":  {map[string]string{"fake_flux.go": "type fake struct{}"}, "fake_test.go is used in fake_flux.go"},
		"a function that would": {map[string]string{"a_test.go": "func FluxOf(s string) string { return s }"}, "TestOf is used in a_test.go"},
	} {
		t.Run(name, func(t *testing.T) { collide(t, "Test", test.files, test.want) })
	}
}

// collide looks for collisions of a kind in files of a stage whose kind is Flux.
func collide(t *testing.T, kind string, files map[string]string, want string) {
	t.Helper()
	repo := t.TempDir()
	s := &stage{dir: "03-flux"}
	for file, text := range files {
		if strings.HasSuffix(file, ".go") {
			text = "package p\n\n" + text + "\n"
		}
		put(t, filepath.Join(repo, s.dir, file), text)
		s.files = append(s.files, file)
	}
	// As git lists them.
	slices.Sort(s.files)
	got, err := taken(repo, s, newRenamer(kindNames("Flux", kind), nil))
	if err != nil {
		t.Fatal(err)
	}
	if want == "" && got != "" || want != "" && !strings.HasPrefix(strings.Replace(got, "03-flux/", "", 1), want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
