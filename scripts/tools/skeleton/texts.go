package main

import (
	"go/ast"
	"go/token"
	"os"
	"slices"
	"strings"
)

// declaration is one function, type, variable or constant of a stage, with the kinds' names and the module's path
// replaced by placeholders.
type declaration struct {
	stage, file, at string
	name, text      string
}

// declarations adds those of one file.
func (r reader) declarations(file *ast.File) error {
	source, err := os.ReadFile(r.fset.Position(file.Pos()).Filename)
	if err != nil {
		return err
	}
	neutral := r.operator.placeholders()
	add := func(name string, doc *ast.CommentGroup, node ast.Node) {
		start := node.Pos()
		if doc != nil {
			start = doc.Pos()
		}
		text := string(source[r.fset.Position(start).Offset:r.fset.Position(node.End()).Offset])
		r.operator.declarations = append(r.operator.declarations, declaration{
			stage: r.operator.dir, file: r.file(node.Pos()), at: r.at(node.Pos()),
			name: neutral.Replace(name), text: neutral.Replace(text),
		})
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			add(functionName(d), d.Doc, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch {
				case d.Tok == token.IMPORT:
				case !d.Lparen.IsValid():
					add(strings.Join(specNames(spec), ", "), d.Doc, d)
				default:
					add(strings.Join(specNames(spec), ", "), specDoc(spec), spec)
				}
			}
		}
	}
	return nil
}

// placeholders replaces what has to differ between stages. A longer name comes before one that it begins with.
func (o *operator) placeholders() *strings.Replacer {
	pairs := []string{o.module, "MODULE"}
	kinds := slices.SortedFunc(slices.Values(o.kinds), func(a, b string) int { return len(b) - len(a) })
	for _, kind := range kinds {
		pairs = append(pairs, kind, "Kind", strings.ToUpper(kind), "KIND", strings.ToLower(kind[:1])+kind[1:], "kind", strings.ToLower(kind), "kind")
	}
	return strings.NewReplacer(pairs...)
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + d.Name.Name
		}
	}
}

func specNames(spec ast.Spec) []string {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return []string{s.Name.Name}
	case *ast.ValueSpec:
		var names []string
		for _, name := range s.Names {
			names = append(names, name.Name)
		}
		return names
	}
	return nil
}

func specDoc(spec ast.Spec) *ast.CommentGroup {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return s.Doc
	case *ast.ValueSpec:
		return s.Doc
	}
	return nil
}
