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
// and the form of deliveries. A program says which it was made for, and every earlier one goes on to run.
const InterfaceVersion = 3

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

// compile parses a program. Its source map is left for when a failure has to be placed, see positions.
func compile(p Program) (*goja.Program, error) {
	tree, err := goja.Parse(p.Name, string(p.Code), parser.WithDisableSourceMaps)
	if err != nil {
		return nil, err
	}
	return goja.CompileAST(tree, true)
}
