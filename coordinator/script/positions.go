package script

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/dop251/goja"
	"github.com/go-sourcemap/sourcemap"
)

// frame is one line of a stack. Lines and columns count from 1.
type frame struct {
	function, file string
	line, column   int
}

func (f frame) String() string {
	return fmt.Sprintf("    at %s (%s:%d:%d)\n", f.function, f.file, f.line, f.column)
}

// frames returns a stack of the runtime in the user's own files.
func (v *vm) frames(stack []goja.StackFrame) []frame {
	var out []frame
	for i := range stack {
		if p := stack[i].Position(); p.Line > 0 {
			out = append(out, frame{stack[i].FuncName(), p.Filename, p.Line, p.Column})
		}
	}
	return v.mapped(out)
}

// stackLine matches goja's "at name (file:line:column(pc))" and "at file:line:column(pc)".
var stackLine = regexp.MustCompile(`(?m)^\s*at (?:(\S+) \()?(.+):(\d+):(\d+)\(\d+\)\)?$`)

func parseStack(text string) []frame {
	var out []frame
	for _, m := range stackLine.FindAllStringSubmatch(text, -1) {
		line, _ := strconv.Atoi(m[3])   // digits by the expression
		column, _ := strconv.Atoi(m[4]) // likewise
		function := m[1]
		if function == "" {
			function = "<anonymous>"
		}
		out = append(out, frame{function, m[2], line, column})
	}
	return out
}

// mapped translates positions in the bundle through its source map. The map is parsed here and not by the interpreter:
// few scripts fail, and the interpreter takes its columns for ones that count from 0.
func (v *vm) mapped(stack []frame) []frame {
	sources, err := sourcemap.Parse("", v.source.SourceMap)
	if err != nil {
		return stack // a position in the bundle is better than none
	}
	for i, at := range stack {
		if file, _, line, column, ok := sources.Source(at.line, at.column-1); ok && at.file == v.source.Name {
			stack[i].file, stack[i].line, stack[i].column = file, line, column+1
		}
	}
	return stack
}

// maxFrames is how much of a stack is shown; the innermost frames tell the most.
const maxFrames = 20

// locate sets stack and place from frames: the place is the innermost frame in the user's own files, and the library's
// frames are left out of the stack.
func (f *Failure) locate(stack []frame) {
	var text strings.Builder
	shown := 0
	for _, at := range stack {
		if strings.HasPrefix(at.file, libraryNamespace+":") {
			continue
		}
		if f.Line == 0 {
			f.File, f.Line, f.Column = at.file, at.line, at.column
		}
		if shown++; shown <= maxFrames {
			text.WriteString(at.String())
		}
	}
	if shown > maxFrames {
		fmt.Fprintf(&text, "    … %d more\n", shown-maxFrames)
	}
	if f.Stack == "" {
		f.Stack = text.String()
	}
}
