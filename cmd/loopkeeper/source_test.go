package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// root is the top of the checkout, seen from this package's folder.
const root = "../.."

// sourceFile is one Go file of the checkout, whatever platform it is for.
type sourceFile struct {
	path   string // from the top of the checkout, with slashes
	folder string // the folder of path, which is the package's import path below the module
	test   bool
	syntax *ast.File
	fset   *token.FileSet
}

// generated says whether a tool wrote the file.
func (f sourceFile) generated() bool { return ast.IsGenerated(f.syntax) }

// sourceFiles parses every Go file of the checkout. It reads files rather than asking `go list`, because rules hold for
// the files of other platforms too.
func sourceFiles(t *testing.T) []sourceFile {
	t.Helper()
	var files []sourceFile
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipFolder(path, entry.Name())
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		syntax, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		files = append(files, sourceFile{
			path: rel, folder: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(rel, "_test.go"),
			syntax: syntax, fset: fset,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go file found: the test looks in the wrong folder")
	}
	return files
}

// skipFolder leaves out what the go command leaves out: dot folders, underscore folders and testdata.
func skipFolder(path, name string) error {
	if path == root {
		return nil
	}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules" {
		return filepath.SkipDir
	}
	return nil
}
