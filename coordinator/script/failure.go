package script

import (
	"errors"
	"fmt"

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
		failure.locate(v.frames(interrupted.Stack()))
		return &failure
	case errors.As(err, &overflow):
		failure := &Failure{Kind: Threw, Message: fmt.Sprintf("functions call each other more than %d deep", maxCallDepth)}
		failure.locate(v.frames(overflow.Stack()))
		return failure
	case errors.As(err, &exception):
		return v.thrown(exception.Value(), exception.Stack())
	default:
		return err
	}
}

// thrown describes a thrown value. An Error knows where it was made; any other value is placed where it was thrown, if
// that is known.
func (v *vm) thrown(value goja.Value, stack []goja.StackFrame) *Failure {
	failure := &Failure{Kind: Threw, Message: "uncaught " + safeString(v.js, value)}
	object, ok := value.(*goja.Object)
	if ok && isError(v.js, object) {
		failure.Message = safeString(v.js, object)
		for cause, depth := object, 0; cause != nil && failure.Line == 0 && depth < 10; depth++ {
			failure.locate(v.mapped(parseStack(property(v.js, cause, "stack"))))
			cause, _ = get(v.js, cause, "cause").(*goja.Object)
		}
	}
	if failure.Line == 0 {
		failure.locate(v.frames(stack))
	}
	if failure.File == "" {
		failure.File = v.source.Name
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
