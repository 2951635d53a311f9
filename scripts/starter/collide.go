package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
)

// scope is a piece of Go in which a name can mean one thing only: what it holds as it stays, and what is renamed.
type scope struct{ kept, renamed map[string]bool }

func newScope() *scope { return &scope{kept: map[string]bool{}, renamed: map[string]bool{}} }

// collision returns a new name that the scope has for something else, or nothing.
func (s *scope) collision() string {
	for _, name := range slices.Sorted(maps.Keys(s.renamed)) {
		if s.kept[name] {
			return name
		}
	}
	return ""
}

// collider finds new names that would mean two things: in a package, in one of its declarations, or in a struct. A
// local variable elsewhere is of no matter.
type collider struct {
	r      *renamer
	scopes map[string]*scope
}

// file returns the first such name in a file of Go.
func (c *collider) file(file string, content []byte) string {
	tree, err := parser.ParseFile(token.NewFileSet(), file, content, parser.SkipObjectResolution)
	if err != nil {
		return "" // reported where the file is renamed
	}
	at := path.Dir(file) + " " + tree.Name.Name
	whole := c.scope(at)
	for called := range c.r.otherPackages(tree) {
		whole.kept[called] = true
	}
	for _, declaration := range tree.Decls {
		for _, name := range declared(declaration) {
			c.add(whole, file, name)
			if renamed := c.rename(file, name); strings.HasSuffix(file, "_test.go") && isTest(renamed) && !isTest(name) {
				return renamed
			}
		}
		if name := c.declaration(file, declaration); name != "" {
			return name
		}
		if of, names := members(declaration); of != "" {
			own := c.scope(at + " " + of)
			for _, name := range names {
				c.add(own, file, name)
			}
			if name := own.collision(); name != "" {
				return name
			}
		}
	}
	return whole.collision()
}

// scope is that of a package, or of a type in it.
func (c *collider) scope(name string) *scope {
	if c.scopes[name] == nil {
		c.scopes[name] = newScope()
	}
	return c.scopes[name]
}

// members are the names that a declaration gives to a type, behind the dot: a method, or the fields of a struct.
func members(declaration ast.Decl) (of string, names []string) {
	switch declaration := declaration.(type) {
	case *ast.FuncDecl:
		if declaration.Recv == nil || len(declaration.Recv.List) == 0 {
			return "", nil
		}
		receiver := declaration.Recv.List[0].Type
		if star, isPointer := receiver.(*ast.StarExpr); isPointer {
			receiver = star.X
		}
		if name, isName := receiver.(*ast.Ident); isName {
			return name.Name, []string{declaration.Name.Name}
		}
	case *ast.GenDecl:
		if declaration.Tok != token.TYPE || len(declaration.Specs) != 1 {
			return "", nil
		}
		spec := declaration.Specs[0].(*ast.TypeSpec)
		if structure, isStruct := spec.Type.(*ast.StructType); isStruct {
			for _, field := range structure.Fields.List {
				for _, name := range field.Names {
					names = append(names, name.Name)
				}
			}
			return spec.Name.Name, names
		}
	}
	return "", nil
}

// isTest reports whether go test would run a function of this name, or reject it.
func isTest(name string) bool {
	for _, prefix := range []string{"Test", "Benchmark", "Fuzz", "Example"} {
		if rest, found := strings.CutPrefix(name, prefix); found && (rest == "" || !isLower(rest[0])) {
			return true
		}
	}
	return false
}

func (c *collider) rename(file, name string) string {
	return c.r.text(place{file: file, part: "identifier"}, name)
}

func (c *collider) add(s *scope, file, name string) {
	if renamed := c.rename(file, name); renamed != name {
		s.renamed[renamed] = true
	} else {
		s.kept[name] = true
	}
}

// declared are the names that a declaration gives to its package.
func declared(declaration ast.Decl) []string {
	var out []string
	switch declaration := declaration.(type) {
	case *ast.FuncDecl:
		if declaration.Recv == nil {
			out = append(out, declaration.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range declaration.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				out = append(out, spec.Name.Name)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					out = append(out, name.Name)
				}
			}
		}
	}
	return out
}

// declaration returns a name that means two things in a declaration, or in a struct or an interface of it. What stands
// behind a dot, or before the colon in a literal, is looked up elsewhere.
func (c *collider) declaration(file string, declaration ast.Decl) (found string) {
	inside := newScope()
	var walk func(ast.Node) bool
	fields := func(list *ast.FieldList) {
		own := newScope()
		for _, field := range list.List {
			for _, name := range field.Names {
				c.add(own, file, name.Name)
			}
			ast.Inspect(field.Type, walk)
		}
		if found == "" {
			found = own.collision()
		}
	}
	walk = func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.StructType:
			fields(node.Fields)
			return false
		case *ast.InterfaceType:
			fields(node.Methods)
			return false
		case *ast.SelectorExpr:
			ast.Inspect(node.X, walk)
			return false
		case *ast.KeyValueExpr:
			if _, isName := node.Key.(*ast.Ident); isName {
				ast.Inspect(node.Value, walk)
				return false
			}
		case *ast.Ident:
			c.add(inside, file, node.Name)
		}
		return true
	}
	ast.Inspect(declaration, walk)
	if found == "" {
		found = inside.collision()
	}
	return found
}
