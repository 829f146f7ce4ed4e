package script

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

// stopped is what a runtime is interrupted with.
type stopped struct{ failure *Failure }

func (s *stopped) Error() string { return s.failure.Message }

// failure says how the script failed, from what the runtime returned.
func (v *vm) failure(err error) error {
	var stop *stopped
	var interrupted *goja.InterruptedError
	var overflow *goja.StackOverflowError
	var exception *goja.Exception
	switch {
	case errors.As(err, &interrupted) && errors.As(interrupted.Unwrap(), &stop):
		failure := *stop.failure
		failure.locate(frames(interrupted.Stack()))
		return &failure
	case errors.As(err, &overflow):
		failure := &Failure{Kind: Threw, Message: fmt.Sprintf("functions call each other more than %d deep", maxCallDepth)}
		failure.locate(frames(overflow.Stack()))
		return failure
	case errors.As(err, &exception):
		return thrown(v.js, exception.Value(), exception.Stack())
	default:
		return err
	}
}

// thrown describes a thrown value. An Error knows where it was made; any other value is placed where it was thrown, if
// that is known.
func thrown(js *goja.Runtime, value goja.Value, stack []goja.StackFrame) *Failure {
	failure := &Failure{Kind: Threw, Message: "uncaught " + safeString(js, value)}
	object, ok := value.(*goja.Object)
	if ok && isError(js, object) {
		failure.Message = safeString(js, object)
		for cause, depth := object, 0; cause != nil && failure.Line == 0 && depth < 10; depth++ {
			failure.locate(parseStack(property(js, cause, "stack")))
			cause, _ = get(js, cause, "cause").(*goja.Object)
		}
	}
	if failure.Line == 0 {
		failure.locate(frames(stack))
	}
	return failure
}

func isError(js *goja.Runtime, object *goja.Object) bool {
	constructor, ok := js.Get("Error").(*goja.Object)
	result := false
	if ok {
		if js.Try(func() { result = js.InstanceOf(object, constructor) }) != nil {
			return false
		}
	}
	return result
}

// get reads a property, which may be a getter that throws.
func get(js *goja.Runtime, object *goja.Object, name string) (value goja.Value) {
	if js.Try(func() { value = object.Get(name) }) != nil {
		return nil
	}
	return value
}

func property(js *goja.Runtime, object *goja.Object, name string) string {
	value := get(js, object, name)
	if value == nil {
		return ""
	}
	return safeString(js, value)
}

// safeString converts a value whose toString may throw.
func safeString(js *goja.Runtime, value goja.Value) (text string) {
	if js.Try(func() { text = value.String() }) != nil {
		return "a value that cannot be shown"
	}
	return text
}

// frame is one line of a stack in the user's terms.
type frame struct {
	function, file string
	line, column   int
}

func (f frame) String() string {
	return fmt.Sprintf("    at %s (%s:%d:%d)\n", f.function, f.file, f.line, f.column)
}

func frames(stack []goja.StackFrame) []frame {
	var out []frame
	for i := range stack {
		if p := stack[i].Position(); p.Line > 0 {
			out = append(out, frame{stack[i].FuncName(), p.Filename, p.Line, p.Column})
		}
	}
	return out
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

// locate sets stack and place from frames: the place is the innermost frame in the user's own files, and the library's
// frames are left out of the stack.
func (f *Failure) locate(stack []frame) {
	var text strings.Builder
	for _, at := range stack {
		if strings.HasPrefix(at.file, libraryNamespace+":") {
			continue
		}
		if f.Line == 0 {
			f.File, f.Line, f.Column = at.file, at.line, at.column
		}
		text.WriteString(at.String())
	}
	if f.Stack == "" {
		f.Stack = text.String()
	}
}
