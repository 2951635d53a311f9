package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/tools/go/packages"
)

const (
	controllerDir = "internal/controller"
	mainFile      = "cmd/main.go"
)

// operator is what a stage's source says.
type operator struct {
	stage
	module string
	// files of internal/controller, tests apart, by name; listed are those of the package comment, in its order.
	files  []string
	listed []string
	uses   []use
	// declarations of internal/controller and of cmd/main.go.
	declarations []declaration
}

// use is a place where a function uses another one of the same package: calls it, or takes it as a value.
type use struct {
	at             string // the file and the line
	from, to       string // files
	caller, callee string
}

func loadAll(ctx context.Context, root string, stages []stage) ([]*operator, error) {
	var operators []*operator
	for _, s := range stages {
		o, err := load(ctx, root, s)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", s.dir, err)
		}
		operators = append(operators, o)
	}
	return operators, nil
}

func load(ctx context.Context, root string, s stage) (*operator, error) {
	fset := token.NewFileSet()
	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Fset: fset, Dir: filepath.Join(root, s.dir), Mode: packages.LoadSyntax | packages.NeedModule,
		// The stage as it is on its own.
		Env: append(os.Environ(), "GOWORK=off"),
	}, "./"+controllerDir)
	if err != nil {
		return nil, err
	}
	if len(loaded) != 1 {
		return nil, fmt.Errorf("%s is %d packages", controllerDir, len(loaded))
	}
	pkg := loaded[0]
	for _, err := range pkg.Errors {
		return nil, err
	}
	o := &operator{stage: s, module: pkg.Module.Path}
	if o.files, err = sources(filepath.Join(root, s.dir, controllerDir)); err != nil {
		return nil, err
	}
	text := reader{operator: o, root: root, fset: fset}
	for _, file := range pkg.Syntax {
		o.listed = append(o.listed, listedIn(file.Doc)...)
		o.uses = append(o.uses, usesIn(text, pkg, file)...)
		if err := text.declarations(file); err != nil {
			return nil, err
		}
	}
	command, err := parser.ParseFile(fset, filepath.Join(root, s.dir, mainFile), nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	return o, text.declarations(command)
}

// sources are the Go files of a folder, tests apart, whatever they are built for.
func sources(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".go") && !strings.HasSuffix(entry.Name(), "_test.go") {
			files = append(files, entry.Name())
		}
	}
	if len(files) == 0 {
		return nil, errors.New("no Go files in " + dir)
	}
	return files, nil
}

var listedFile = regexp.MustCompile(`(?m)^\t([a-z0-9_]+\.go)\b`)

// listedIn returns the files that a package comment lists: one in a line, indented by a tab.
func listedIn(doc *ast.CommentGroup) []string {
	var files []string
	for _, match := range listedFile.FindAllStringSubmatch(doc.Text(), -1) {
		files = append(files, match[1])
	}
	return files
}

// reader names places in the source as a reader of the repository does.
type reader struct {
	operator *operator
	root     string
	fset     *token.FileSet
}

// at is FILE:LINE, relative to the repository.
func (r reader) at(pos token.Pos) string {
	position := r.fset.Position(pos)
	file, err := filepath.Rel(r.root, position.Filename)
	if err != nil {
		file = position.Filename
	}
	return fmt.Sprintf("%s:%d", filepath.ToSlash(file), position.Line)
}

// file is the name of the file, without its folder.
func (r reader) file(pos token.Pos) string {
	return filepath.Base(r.fset.Position(pos).Filename)
}
