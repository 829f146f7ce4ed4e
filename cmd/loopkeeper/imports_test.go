package main_test

import (
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/loopkeeper/loopkeeper/"

// layer is a part of the tree and what of ours it may import beside itself.
type layer struct {
	tree    string
	imports []string // trees; a package of the same layer is always allowed
	pure    bool     // nothing but the standard library outside tests, so that it stays a function of its arguments
}

// layers is the import direction of the house (docs/architecture.md, "The house"). The longest matching tree decides.
var layers = []layer{
	{tree: "cmd", imports: []string{"coordinator", "worker", "scheduler", "hwprobe", "proto", "configs"}},
	{tree: "configs", imports: []string{"proto"}},
	{tree: "proto"},
	{tree: "scheduler", pure: true},
	{tree: "hwprobe"},

	{tree: "worker", imports: []string{"hwprobe", "proto"}},

	{tree: "coordinator", imports: []string{"scheduler", "proto"}},
	{tree: "coordinator/run", pure: true},
	{tree: "coordinator/ledger", imports: []string{"coordinator/run", "proto"}},
	{tree: "coordinator/script", imports: []string{"coordinator/run", "scheduler", "proto"}},
	{tree: "coordinator/workflows", imports: []string{"coordinator/script", "proto"}},
	{tree: "coordinator/engine", imports: []string{
		"coordinator/run", "coordinator/ledger", "coordinator/params", "coordinator/script", "coordinator/workflows", "scheduler", "proto"}},
}

// layerOf returns the layer that a folder of this module belongs to.
func layerOf(folder string) (layer, bool) {
	var found layer
	for _, l := range layers {
		if within(folder, l.tree) && len(l.tree) > len(found.tree) {
			found = l
		}
	}
	return found, found.tree != ""
}

func within(folder, tree string) bool { return folder == tree || strings.HasPrefix(folder, tree+"/") }

func TestImportsPointOneWay(t *testing.T) {
	for _, file := range sourceFiles(t) {
		from, ok := layerOf(file.folder)
		if !ok {
			t.Errorf("%s: the folder is not part of the house", file.path)
			continue
		}
		for _, spec := range file.syntax.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatalf("%s: %v", file.path, err)
			}
			if complaint := from.refuses(path, file.test); complaint != "" {
				t.Errorf("%s imports %s: %s", file.path, path, complaint)
			}
		}
	}
}

// refuses says why a file of the layer must not import path, or nothing when it may.
func (l layer) refuses(path string, test bool) string {
	folder, ours := strings.CutPrefix(path, module)
	if !ours {
		// An import path whose first element has a dot is a module, anything else the standard library.
		if first, _, _ := strings.Cut(path, "/"); l.pure && !test && strings.Contains(first, ".") {
			return l.tree + " imports the standard library only"
		}
		return ""
	}
	to, ok := layerOf(folder)
	if !ok {
		return "no such part of the house"
	}
	if to.tree == l.tree {
		return ""
	}
	for _, tree := range l.imports {
		if within(folder, tree) {
			return ""
		}
	}
	// The coordinator's other packages (dispatch, fleet, api, web and the root that wires them) sit above the ordered ones.
	if l.tree == "coordinator" && within(folder, "coordinator") {
		return ""
	}
	return l.tree + " may import of ours only " + strings.Join(append([]string{l.tree}, l.imports...), ", ")
}

// The rules themselves are held to the cases that the design names, so that a slip in the table shows.
func TestImportRules(t *testing.T) {
	const refused, allowed = false, true
	for _, c := range []struct {
		folder, imported string
		want             bool
	}{
		{"cmd/loopkeeper/cli", module + "coordinator/engine", allowed},
		{"cmd/fakeollama", module + "worker/ollama/ollamatest", allowed},
		{"coordinator/dispatch", module + "coordinator/engine", allowed},
		{"coordinator/api", module + "scheduler", allowed},
		{"coordinator/engine", module + "coordinator/ledger", allowed},
		{"coordinator/engine", module + "coordinator/dispatch", refused},
		{"coordinator/ledger", module + "coordinator/engine", refused},
		{"coordinator/run", module + "coordinator/ledger", refused},
		{"coordinator/run", module + "proto/apierr", refused},
		{"coordinator/run", "google.golang.org/grpc", refused},
		{"coordinator/run", "encoding/json", allowed},
		{"coordinator/fleet", module + "worker/ollama", refused},
		{"coordinator/fleet", module + "hwprobe", refused},
		{"coordinator/api", module + "configs", refused},
		{"worker/serve", module + "worker/calls", allowed},
		{"worker/serve", module + "hwprobe", allowed},
		{"worker/serve", module + "scheduler", refused},
		{"worker/serve", module + "coordinator/run", refused},
		{"scheduler", module + "proto/apierr", refused},
		{"scheduler", "golang.org/x/sync/errgroup", refused},
		{"hwprobe", module + "proto/apierr", refused},
		{"hwprobe", "github.com/shirou/gopsutil/v3/mem", allowed},
	} {
		from, _ := layerOf(c.folder)
		if complaint := from.refuses(c.imported, false); (complaint == "") != c.want {
			t.Errorf("%s imports %s: allowed = %t, want %t", c.folder, c.imported, complaint == "", c.want)
		}
	}
}
