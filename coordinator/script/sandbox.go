package script

import (
	_ "embed"
	"fmt"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
)

// The two names where a program and its host meet. See doc.go for the interface; the library removes the first before
// the user's code runs, the host the second.
const (
	requestGlobal = "__loopkeeper_request"
	programGlobal = "__loopkeeper_program"
)

// InterfaceVersion is the version of what host and program say to each other: the two globals, the kinds of requests
// and the form of deliveries. A run pins its program's version.
const InterfaceVersion = 1

// maxCallDepth is how deep functions may call each other. goja needs some 500 bytes of Go stack for a frame of script
// and a few kB where a built-in calls back, so this stays below the child's stack limit.
const maxCallDepth = 4000

//go:embed sandbox.js
var sandboxSource string

var sandboxProgram = goja.MustCompile("loopkeeper:sandbox", sandboxSource, true)

// newRuntime returns a JavaScript runtime without clock, randomness or any way to make code from text.
func newRuntime(seed int64, now func() time.Time) (*goja.Runtime, error) {
	vm := goja.New()
	vm.SetRandSource(random(seed))
	vm.SetTimeSource(now)
	vm.SetMaxCallStackSize(maxCallDepth)
	if _, err := vm.RunProgram(sandboxProgram); err != nil {
		return nil, fmt.Errorf("lock the sandbox: %w", err)
	}
	return vm, nil
}

// compile parses a program with its source map, so that every position goja reports is one in the user's own files.
func compile(p Program) (*goja.Program, error) {
	code := string(p.Code)
	if len(p.SourceMap) > 0 {
		code += "\n//# sourceMappingURL=program.js.map\n"
	}
	load := parser.WithSourceMapLoader(func(string) ([]byte, error) { return p.SourceMap, nil })
	tree, err := goja.Parse(p.Name, code, load)
	if err != nil {
		return nil, err
	}
	return goja.CompileAST(tree, true)
}
