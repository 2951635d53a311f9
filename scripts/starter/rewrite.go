package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// rewrite returns a file's content with the names replaced, each kind of file by its own syntax. file
// is its path in the stage.
func (r *renamer) rewrite(file string, content []byte) ([]byte, error) {
	base := path.Base(file)
	switch {
	case base == "go.sum" || base == "LICENSE" || bytes.IndexByte(content, 0) >= 0:
		return content, nil
	case base == "go.mod":
		return r.rewriteModule(file, content)
	case path.Ext(file) == ".go":
		return r.rewriteGo(file, content)
	case slices.Contains([]string{".yaml", ".yml"}, path.Ext(file)) || base == "PROJECT":
		return r.rewriteYAML(file, content)
	}
	return []byte(r.text(place{file: file}, string(content))), nil
}

// edit is a piece of a file's source and what takes its place.
type edit struct {
	start, end int
	text       string
}

func apply(source []byte, edits []edit) []byte {
	slices.SortFunc(edits, func(a, b edit) int { return a.start - b.start })
	var out bytes.Buffer
	last := 0
	for _, e := range edits {
		out.Write(source[last:e.start])
		out.WriteString(e.text)
		last = e.end
	}
	out.Write(source[last:])
	return out.Bytes()
}

// rewriteGo replaces identifiers, import paths of the stage's own module, string literals and
// comments. What another package exports keeps its name.
func (r *renamer) rewriteGo(file string, source []byte) ([]byte, error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading Go: %w", err)
	}
	others := r.otherPackages(tree)

	var edits []edit
	replace := func(part string, from, to token.Pos) {
		start, end := files.Position(from).Offset, files.Position(to).Offset
		old := string(source[start:end])
		if text := r.text(place{file, part}, old); text != old {
			edits = append(edits, edit{start, end, text})
		}
	}
	ast.Inspect(tree, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			if r.isOwn(unquote(node.Path.Value)) {
				replace("import", node.Path.Pos(), node.Path.End())
			}
			if node.Name != nil {
				replace("identifier", node.Name.Pos(), node.Name.End())
			}
			return false
		case *ast.SelectorExpr:
			if pkg, isName := node.X.(*ast.Ident); isName && others[pkg.Name] {
				return false
			}
		case *ast.Ident:
			replace("identifier", node.Pos(), node.End())
		case *ast.BasicLit:
			if node.Kind == token.STRING {
				replace("string", node.Pos(), node.End())
			}
		}
		return true
	})
	for _, group := range tree.Comments {
		for _, comment := range group.List {
			replace("comment", comment.Pos(), comment.End())
		}
	}
	out, err := format.Source(apply(source, edits))
	if err != nil {
		return nil, fmt.Errorf("formatting Go: %w", err)
	}
	return out, nil
}

// otherPackages returns the names by which a file calls packages that are not of the stage.
func (r *renamer) otherPackages(tree *ast.File) map[string]bool {
	others := map[string]bool{}
	for _, spec := range tree.Imports {
		target := unquote(spec.Path.Value)
		if r.isOwn(target) {
			continue
		}
		called := path.Base(target)
		if spec.Name != nil {
			called = spec.Name.Name
		}
		others[called] = true
	}
	return others
}

// unquote returns an import path without its quotes; the parser has seen that it has them.
func unquote(literal string) string {
	target, _ := strconv.Unquote(literal)
	return target
}

// isOwn reports whether a module or an import path is one that is renamed.
func (r *renamer) isOwn(target string) bool {
	return slices.ContainsFunc(r.names, func(n name) bool {
		return n.style == address && strings.Contains(n.old, "/") && (target == n.old || strings.HasPrefix(target, n.old+"/"))
	})
}

// rewriteModule replaces module paths in a go.mod. Where replaced modules are is not its business.
func (r *renamer) rewriteModule(file string, source []byte) ([]byte, error) {
	mod, err := modfile.Parse(file, source, nil)
	if err != nil {
		return nil, err // it names the file
	}
	rename := func(s string) string {
		if !r.isOwn(s) {
			return s
		}
		return r.text(place{file: file}, s)
	}
	if err := mod.AddModuleStmt(rename(mod.Module.Mod.Path)); err != nil {
		return nil, fmt.Errorf("naming the module: %w", err)
	}
	for _, require := range mod.Require {
		if to := rename(require.Mod.Path); to != require.Mod.Path {
			line := require.Syntax
			at := slices.Index(line.Token, modfile.AutoQuote(require.Mod.Path))
			line.Token[at] = modfile.AutoQuote(to)
			// A path that ends in a major version has versions of that number.
			if _, major, _ := module.SplitPathVersion(to); major != "" {
				line.Token[at+1] = module.PathMajorPrefix(major) + ".0.0"
			}
		}
	}
	for _, replace := range slices.Clone(mod.Replace) {
		if to := rename(replace.Old.Path); to != replace.Old.Path {
			line := replace.Syntax
			line.Token[slices.Index(line.Token, modfile.AutoQuote(replace.Old.Path))] = modfile.AutoQuote(to)
		}
	}
	mod.SortBlocks()
	return mod.Format()
}

// rewriteYAML replaces names field by field, so that a stage can keep what stands in one, and leaves
// the layout of the file as it is.
func (r *renamer) rewriteYAML(file string, source []byte) ([]byte, error) {
	fields, err := scalars(source)
	if err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	// Every field reaches to the next one: what stands between are comments and punctuation.
	fields = append([]field{{}}, fields...)
	var edits []edit
	for i, f := range fields {
		end := len(source)
		if i+1 < len(fields) {
			end = fields[i+1].start
		}
		edits = append(edits, edit{f.start, end, r.text(place{file, f.path}, string(source[f.start:end]))})
	}
	return apply(source, edits), nil
}

// field is a key or a value of a manifest: where it begins, and its path, as in spec.names.
type field struct {
	start int
	path  string
}

func scalars(source []byte) ([]field, error) {
	lines := bytes.SplitAfter(source, []byte("\n"))
	starts := make([]int, len(lines)+1)
	for i, line := range lines {
		starts[i+1] = starts[i] + len(line)
	}
	var fields []field
	var walk func(node *yaml.Node, at string)
	walk = func(node *yaml.Node, at string) {
		if node.Kind == yaml.ScalarNode && node.Line > 0 {
			// Columns count characters.
			line := []rune(string(lines[node.Line-1]))
			fields = append(fields, field{starts[node.Line-1] + len(string(line[:node.Column-1])), at})
		}
		for i, child := range node.Content {
			below := at
			if node.Kind == yaml.MappingNode {
				below = strings.TrimPrefix(at+"."+node.Content[i-i%2].Value, ".")
			}
			walk(child, below)
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(source))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return nil, err
		}
		walk(&document, "")
	}
	slices.SortFunc(fields, func(a, b field) int { return a.start - b.start })
	return fields, nil
}
