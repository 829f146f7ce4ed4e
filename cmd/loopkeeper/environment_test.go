package main_test

import (
	"go/ast"
	"slices"
	"testing"
)

// surroundings are the ways to read what a process was started with.
var surroundings = map[string][]string{
	"os":      {"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Args", "UserHomeDir", "UserConfigDir", "UserCacheDir"},
	"syscall": {"Getenv", "Environ"},
	"flag":    {"Parse", "Args", "Arg", "String", "Int", "Bool", "Duration", "CommandLine"},
}

// Only cmd and configs read flags and the environment; every other package gets an Options value.
func TestOnlyCommandsReadTheirSurroundings(t *testing.T) {
	for _, file := range sourceFiles(t) {
		if file.test || within(file.folder, "cmd") || within(file.folder, "configs") {
			continue
		}
		ast.Inspect(file.syntax, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			// A package name resolves to no object of its own file, unlike a variable that happens to have its name.
			if name, ok := selector.X.(*ast.Ident); ok && name.Obj == nil && slices.Contains(surroundings[name.Name], selector.Sel.Name) {
				t.Errorf("%s reads %s.%s: take it as an option", file.fset.Position(n.Pos()), name.Name, selector.Sel.Name)
			}
			return true
		})
	}
}
