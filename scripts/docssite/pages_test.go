package main

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// repository is a small one, with a link of each sort.
func repository() (fstest.MapFS, []string) {
	repo := fstest.MapFS{}
	files := map[string]string{
		"README.md":                               "# The repository\n\n[stage](01-stage/README.md)\n",
		"docs/README.md":                          "# The chapters\n\n![a cow](images/cow.png) [one](01-one.md)\n",
		"docs/words.md":                           "# Words\n\n[one](01-one.md)\n",
		"docs/images/cow.png":                     "# no Markdown, [gone](gone.md)\n",
		"docs/01-one.md":                          "# 01 `One`\n\n[`Work` in work.go](../01-stage/work.go#L3), [`Work`](../01-stage/work.go), [all](../01-stage/config) [out](https://example.com/x)\n",
		"docs/02-two.md":                          "# 02 Two\n\n[the first](01-one.md#01-one)\n",
		"01-stage/README.md":                      "# A stage\n",
		"01-stage/work.go":                        "package stage\n\n// Work works.\nfunc Work() {}\n\nfunc (a) Same() {}\n\nfunc (b) Same() {}\n",
		"01-stage/unlinked.go":                    "package stage\n",
		"01-stage/exercises/README.md":            "# Exercises\n\n[02a](02a-second/README.md) [01b](01b-first/README.md) [02a](02a-second/README.md) [work](../work.go)\n",
		"01-stage/exercises/02a-second/README.md": "# 02a Second\n",
		"01-stage/exercises/01b-first/README.md":  "# 01b First\n",
		"01-stage/config/a.yaml":                  "a: 1\n",
		"01-stage/config/deep/b.yaml":             "b: 1\n",
	}
	names := make([]string, 0, len(files))
	for name, text := range files {
		repo[name] = &fstest.MapFile{Data: []byte(text)}
		names = append(names, name)
	}
	slices.Sort(names)
	return repo, names
}

func TestCollect(t *testing.T) {
	t.Parallel()
	pages, err := collect(repository())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range pages {
		got = append(got, strings.Join([]string{p.Kind, p.URL, p.Title}, " "))
	}
	want := []string{
		"article /repository/01-stage/README.md.html A stage",
		"folder /repository/01-stage/config/index.html 01-stage/config",
		"source /repository/01-stage/config/a.yaml.html 01-stage/config/a.yaml",
		"article /repository/01-stage/exercises/01b-first/README.md.html 01b First",
		"article /repository/01-stage/exercises/02a-second/README.md.html 02a Second",
		"article /repository/01-stage/exercises/README.md.html Exercises",
		"source /repository/01-stage/work.go.html 01-stage/work.go",
		"article /repository/README.md.html The repository",
		"chapter /01-one.html 01 One",
		"chapter /02-two.html 02 Two",
		"start /index.html The chapters",
		"picture /repository/docs/images/cow.png docs/images/cow.png",
		"guide /words.html Words",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, p := range pages {
		var want []string
		if p.Title == "Exercises" {
			want = []string{"01-stage/exercises/02a-second/README.md", "01-stage/exercises/01b-first/README.md"}
		}
		if !slices.Equal(p.Exercises, want) {
			t.Errorf("the exercises of %s are %s, not %s", p.Source, p.Exercises, want)
		}
	}
}

func TestCollectRefusesDeadLinks(t *testing.T) {
	t.Parallel()
	repo, names := repository()
	repo["docs/02-two.md"] = &fstest.MapFile{Data: []byte("[gone](../01-stage/gone.go)\n\n![gone](images/gone.png)\n")}
	_, err := collect(repo, names)
	const want = "docs/02-two.md: the link to ../01-stage/gone.go is dead: there is no 01-stage/gone.go in the repository\n" +
		"docs/02-two.md: the link to images/gone.png is dead: there is no docs/images/gone.png in the repository"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := collect(repo, slices.DeleteFunc(names, func(name string) bool { return name == startPage })); err == nil ||
		!strings.Contains(err.Error(), "docs/README.md, the start page, is missing") {
		t.Errorf("got %v", err)
	}
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(`# X

[embedmd]:# (../a.go go /x/ /y/)
~go
code
[embedmd]:# (shown, as it is in a block)
~

~sh terminal=operator until="it runs"
make run
~

~sh fails kind
false
~

~console
~
`, "~", "```")
	want := strings.ReplaceAll(`# X

~go
code
[embedmd]:# (shown, as it is in a block)
~

~sh {note="terminal: operator"}
make run
~

~sh {note="ends with an error, needs containers"}
false
~

~console
~
`, "~", "```")
	got, err := prepare(&page{Content: []byte(text)})
	if err != nil || string(got) != want {
		t.Errorf("%v, got\n%s", err, got)
	}
	if _, err := prepare(&page{Content: []byte("a\n{{< b >}}\n")}); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
	}
}

func TestDeclarations(t *testing.T) {
	t.Parallel()
	repo, _ := repository()
	lines := declarations(&page{Source: "work.go", Content: repo["01-stage/work.go"].Data})
	if lines["Work"] != 4 {
		t.Errorf("Work is declared in line 4, got %d", lines["Work"])
	}
	if line, found := lines["Same"]; found {
		t.Errorf("Same is declared twice, got line %d", line)
	}
}

func TestSections(t *testing.T) {
	t.Parallel()
	sections, err := sectionsOf([]byte(`<body><nav>not this</nav><article><h1 id="x">01 One</h1><p>first <code>words</code></p>
<div class="diagram"><pre>flowchart</pre></div>
<h2 id="two">Two <a class="anchor" href="#two">#</a></h2><ul><li>a</li><li>b</li></ul></article></body>`),
		&page{URL: "/01-one.html", Title: "01 One"})
	if err != nil {
		t.Fatal(err)
	}
	want := []section{
		{URL: "/01-one.html", Page: "01 One", Title: "01 One", Text: "first words"},
		{URL: "/01-one.html#two", Page: "01 One", Title: "Two", Text: "a b"},
	}
	if !slices.Equal(sections, want) {
		t.Errorf("got %+v", sections)
	}
}
