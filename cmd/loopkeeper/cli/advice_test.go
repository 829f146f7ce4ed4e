package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
)

// What stands behind "Next:" can be typed: each such text of the command line's own source that begins with the program is a command that
// there is, with flags that it has. Texts of a coordinator are looked at when they are shown, see advised.
func TestEveryNextLineCanBeTyped(t *testing.T) {
	found := 0
	for _, dir := range []string{".", "../ui", "../doctor", "../../../coordinator/schedule"} {
		for at, text := range adviceIn(t, dir) {
			if !strings.HasPrefix(text, "loopkeeper ") {
				continue
			}
			if found++; !typed(text) {
				t.Errorf("%s: %s", at, text)
			}
		}
	}
	if found < 90 {
		t.Errorf("only %d were found", found)
	}
}

// adviceIn are the texts of a folder's source that are given as advice, by their places: what can only be known later is an x.
func adviceIn(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		take := func(e ast.Expr) {
			if text, ok := textOf(e); ok {
				all[set.Position(e.Pos()).String()] = text
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "WithNext" || f.Sel.Name == "next") {
					for _, arg := range n.Args {
						take(arg)
						if text, ok := textOf(arg); ok && f.Sel.Name == "next" && !ui.Command(text) {
							t.Errorf("%s: %q is no command", set.Position(arg.Pos()), text)
						}
					}
				}
			case *ast.CompositeLit: // []string{"loopkeeper …"}
				for _, e := range n.Elts {
					take(e)
				}
			case *ast.BasicLit:
				if at, next, ok := strings.Cut(n.Value, "Next: "); ok && n.Kind == token.STRING {
					next, _, _ = strings.Cut(next, `\n`)
					all[set.Position(n.Pos()).String()+at] = someValue(strings.Trim(next, `"`))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var verbs = regexp.MustCompile(`%[a-z]`)

// someValue puts a value in place of each verb of a format.
func someValue(format string) string {
	return verbs.ReplaceAllString(strings.ReplaceAll(format, "%d", "1"), "x")
}

func textOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, known := textOf(e.X)
		right, also := textOf(e.Y)
		if !known {
			left = "x"
		}
		if !also {
			right = "x"
		}
		return left + right, known || also
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" {
			text, ok := textOf(e.Args[0])
			return someValue(text), ok
		}
	}
	return "", false
}

// Advice in words stands in the message, and only commands behind "Next:", whoever sent them.
func TestAdviceInWordsIsNoCommand(t *testing.T) {
	commands, words := advised([]string{"loopkeeper show 7f3k", "loopkeeper show 7f3k lists the steps", "wait for its end", "loopkeeper runs  # all of them", "loopkeeper map --help",
		"loopkeeper fit nope --gguf FILE, with the file", "loopkeeper show --nope", "loopkeeper answer 7f3k 1 'the \"blue\" one'", "loopkeeper", "repair the script"})
	if want := []string{"loopkeeper show 7f3k", "loopkeeper runs  # all of them", "loopkeeper map --help", "loopkeeper answer 7f3k 1 'the \"blue\" one'", "loopkeeper"}; !slices.Equal(commands, want) {
		t.Errorf("commands %q", commands)
	}
	if len(words) != 5 {
		t.Errorf("words %q", words)
	}
}

// What the command line named stands in the advice in place of the word for it.
func TestAdviceNamesWhatWasNamed(t *testing.T) {
	a := &app{}
	root := newRoot(a)
	for line, want := range map[string]string{
		"run ./flow.ts": "loopkeeper run ./flow.ts --params", "schedule add x --workflow 'my flow'": "loopkeeper run 'my flow' --params", "workflows": "loopkeeper run WORKFLOW --params",
	} {
		c, rest, err := root.Find(shellWords(line))
		if err != nil || c.ParseFlags(rest) != nil {
			t.Fatal(line, err)
		}
		if got := a.filled(c, []string{"loopkeeper run WORKFLOW --params"}); got[0] != want {
			t.Errorf("%s: %s", line, got[0])
		}
	}
}

// Each command says which argument is missing: the first that was not given, not the last that there is.
func TestTheMissingArgumentIsNamed(t *testing.T) {
	seen := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		_, needed := positionals(c.Use)
		for n := range needed {
			if c.Args == nil || c.Name() == "fit" { // which takes a file instead
				continue
			}
			seen++
			if err := c.ValidateArgs(slices.Repeat([]string{"x"}, n)); err == nil || err.Error() != needed[n]+" is missing" {
				t.Errorf("%s with %d arguments: %v, want %s is missing", c.CommandPath(), n, err, needed[n])
			}
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	root := newRoot(&app{})
	check(root)
	if seen < 30 {
		t.Errorf("only %d were looked at", seen)
	}
	for line, want := range map[string]string{
		"show a b c": `unexpected argument "b"`, "answer 7f3k": "ANSWER is missing", "answer 7f3k ''": "ANSWER is empty", "answer '' x": "RUN is empty",
		"approve 7f3k ' '": "STEP is empty", "why 7f3k '' why": "SUBJECT is empty", "answer 7f3k 1 ''": "ANSWER is empty",
	} {
		c, rest, err := root.Find(shellWords(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.ValidateArgs(rest); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
