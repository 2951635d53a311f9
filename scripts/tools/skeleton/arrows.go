package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// usesIn returns the places of one file that use a function of the package.
func usesIn(text reader, pkg *packages.Package, file *ast.File) []use {
	var uses []use
	for _, decl := range file.Decls {
		ast.Inspect(decl, func(node ast.Node) bool {
			name, ok := node.(*ast.Ident)
			if !ok {
				return true
			}
			if used := functionOf(pkg.Types, pkg.TypesInfo.Uses[name]); used != nil {
				uses = append(uses, use{
					at: text.at(name.Pos()), from: text.file(name.Pos()), to: text.file(used.Pos()),
					caller: declared(decl), callee: nameOf(used),
				})
			}
			return true
		})
	}
	return uses
}

// functionOf returns the package's function, method or variable with functions in it that an object is; nil if it is
// anything else. A method of an interface is nothing that could be gone to.
func functionOf(pkg *types.Package, object types.Object) types.Object {
	switch o := object.(type) {
	case *types.Func:
		origin := o.Origin()
		receiver := origin.Signature().Recv()
		if origin.Pkg() == pkg && (receiver == nil || !types.IsInterface(receiver.Type())) {
			return origin
		}
	case *types.Var:
		if o.Parent() == pkg.Scope() && holdsFunction(pkg, o.Type(), 4) {
			return o
		}
	}
	return nil
}

// holdsFunction reports whether a value of a type is a function, or a table of functions, down to a depth. The fields of
// other packages' structs are their own affair.
func holdsFunction(pkg *types.Package, t types.Type, depth int) bool {
	named, isNamed := types.Unalias(t).(*types.Named)
	switch u := t.Underlying().(type) {
	case *types.Signature:
		return true
	case interface{ Elem() types.Type }: // slice, array, map, pointer, channel
		return depth > 0 && holdsFunction(pkg, u.Elem(), depth-1)
	case *types.Struct:
		for field := range u.Fields() {
			if depth > 0 && (!isNamed || named.Obj().Pkg() == pkg) && holdsFunction(pkg, field.Type(), depth-1) {
				return true
			}
		}
	}
	return false
}

// nameOf is what a function is called, with the type of its receiver.
func nameOf(object types.Object) string {
	function, ok := object.(*types.Func)
	if !ok || function.Signature().Recv() == nil {
		return object.Name()
	}
	receiver := function.Signature().Recv().Type()
	if pointer, ok := receiver.(*types.Pointer); ok {
		receiver = pointer.Elem()
	}
	return receiver.(*types.Named).Obj().Name() + "." + object.Name()
}

// declared is the name of the first thing that a declaration declares.
func declared(decl ast.Decl) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return functionName(d)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			return strings.Join(specNames(spec), ", ")
		}
	}
	return ""
}

// checkArrows reports every use of a function of an earlier file.
func (o *operator) checkArrows() []string {
	var problems []string
	between := 0
	for _, u := range o.uses {
		from, to := slices.Index(o.listed, u.from), slices.Index(o.listed, u.to)
		if from != to {
			between++
		}
		if from >= 0 && to >= 0 && to < from {
			problems = append(problems, fmt.Sprintf("%s: %s → %s: up to the earlier %s", u.at, u.caller, u.callee, u.to))
		}
	}
	if between == 0 {
		problems = append(problems, o.dir+": no file uses a function of another one: nothing was checked")
	}
	return problems
}
