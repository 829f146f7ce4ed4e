package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dop251/goja"
)

// noteKinds are the requests that expect no delivery.
var noteKinds = map[string]bool{
	"output": true, "collected": true, "log": true, "expect": true, "cover": true, "waive": true, "fallback": true, "until": true,
}

// vm is one runtime with its program loaded: the part of a session that is the same in this process and in a child.
type vm struct {
	js        *goja.Runtime
	border    border
	source    Program
	program   *goja.Object
	version   int64 // of the interface that the program was made for
	clock     time.Time
	next      int                     // position of the next request
	fresh     []Request               // made since the last yield
	pending   map[int]func(any) error // resolves the promise of the request at a position
	checks    []*asked                // that the script has not answered yet, in the order they were asked
	answered  []Checked               // since the last yield
	heard     int                     // deliveries so far
	main      *goja.Promise           // of the default function; nil while loading
	unhandled []*goja.Promise         // rejected without a handler, in order
	ended     bool
}

// newVM makes a runtime without a program.
func newVM(seed int64, clock time.Time) (*vm, error) {
	v := &vm{clock: clock, pending: map[int]func(any) error{}}
	var err error
	if v.js, err = newRuntime(seed, func() time.Time { return v.clock }); err != nil {
		return nil, err
	}
	v.border = newBorder(v.js)
	v.js.SetPromiseRejectionTracker(v.trackRejection)
	return v, nil
}

// load runs the program's top level.
func (v *vm) load(p Program) error {
	v.source = p
	code, err := compile(p)
	if err != nil {
		return &Failure{Kind: Syntax, Message: err.Error(), File: p.Name}
	}
	if err := v.offer(); err != nil {
		return fmt.Errorf("prepare the sandbox: %w", err)
	}
	if _, err := v.js.RunProgram(code); err != nil {
		return v.failure(err)
	}
	object, ok := v.js.Get(programGlobal).(*goja.Object)
	if !ok {
		return &Failure{Kind: Syntax, Message: "the program was not bundled by loopkeeper", File: p.Name}
	}
	if version := object.Get("version"); version != nil {
		v.version = version.ToInteger()
	}
	if v.version > InterfaceVersion {
		return &Failure{Kind: Incompatible, File: p.Name, Message: fmt.Sprintf("the program speaks version %d of the script interface and this "+
			"loopkeeper knows %d: go on with the loopkeeper that the run was started with, or a later one", v.version, InterfaceVersion)}
	}
	v.program = object
	return v.js.GlobalObject().Set(programGlobal, goja.Undefined()) // a var cannot be deleted
}

// describe loads the program and asks it for its interface.
func (v *vm) describe(p Program) (Interface, error) {
	if err := v.load(p); err != nil {
		return Interface{}, err
	}
	value, err := v.call("describe", goja.Undefined())
	if err != nil {
		return Interface{}, err
	}
	var i Interface
	if err := json.Unmarshal([]byte(value.String()), &i); err != nil {
		return Interface{}, fmt.Errorf("read the program's interface: %w", err)
	}
	return i, nil
}

// start loads the program and runs its default function until it waits or ends.
func (v *vm) start(p Program, input json.RawMessage) Yield {
	if err := v.load(p); err != nil {
		return v.end(err)
	}
	given, _, err := v.given(input)
	if err != nil {
		return v.end(fmt.Errorf("the input: %w", err))
	}
	value, err := v.call("run", given)
	if err != nil {
		return v.end(err)
	}
	promise, ok := value.Export().(*goja.Promise)
	if !ok {
		return v.end(&Failure{Kind: Crashed, Message: "the program's run function returned no promise"})
	}
	v.main = promise
	return v.yield()
}

// offer gives the program the host's one function, and on it the one that makes canonical JSON.
func (v *vm) offer() error {
	request := v.js.ToValue(v.request).(*goja.Object)
	if err := request.Set("canonical", v.canonical); err != nil {
		return err
	}
	return v.js.Set(requestGlobal, request)
}

func (v *vm) canonical(c goja.FunctionCall) goja.Value {
	return v.js.ToValue(string(v.border.canonical(c.Argument(0), c.Argument(1).String())))
}

// request takes a kind and a body: an object, or canonical JSON. It returns a promise of the delivery, or undefined for a note.
func (v *vm) request(c goja.FunctionCall) goja.Value {
	kind := c.Argument(0).String()
	var body []byte
	if text, ok := c.Argument(1).(goja.String); ok {
		body = []byte(text.String())
	} else {
		body = v.border.canonical(c.Argument(1), kind) // may call the script, which may make requests
	}
	r := Request{Pos: v.next, Kind: kind, Body: body, Note: noteKinds[kind]}
	v.next++
	v.fresh = append(v.fresh, r)
	if r.Note {
		return goja.Undefined()
	}
	promise, resolve, _ := v.js.NewPromise()
	v.pending[r.Pos] = resolve
	return v.js.ToValue(promise)
}

func (v *vm) trackRejection(p *goja.Promise, operation goja.PromiseRejectionOperation) {
	if operation == goja.PromiseRejectionReject {
		v.unhandled = append(v.unhandled, p)
		return
	}
	v.unhandled = slices.DeleteFunc(v.unhandled, func(other *goja.Promise) bool { return other == p })
}

// call calls a function of the program.
func (v *vm) call(name string, argument goja.Value) (goja.Value, error) {
	function, ok := goja.AssertFunction(v.program.Get(name))
	if !ok {
		return nil, &Failure{Kind: Syntax, Message: "the program was not bundled by loopkeeper: it has no " + name}
	}
	value, err := function(goja.Undefined(), argument)
	if err != nil {
		return nil, v.failure(err)
	}
	return value, nil
}

// errNotPending means that the engine delivered what was not asked for, or twice.
var errNotPending = errors.New("no request is waiting at this position")

// deliver settles one request and runs the script until it waits again or ends.
func (v *vm) deliver(d Delivery) (Yield, error) {
	resolve, ok := v.pending[d.Pos]
	if !ok || v.ended {
		return Yield{}, fmt.Errorf("deliver position %d: %w", d.Pos, errNotPending)
	}
	value, err := v.delivered(d)
	if err != nil {
		return Yield{}, fmt.Errorf("deliver position %d: %w", d.Pos, err)
	}
	v.clock = d.Time
	v.heard++
	if d.Check {
		return v.check(d, value)
	}
	delete(v.pending, d.Pos)
	if err := resolve(value); err != nil {
		return v.end(v.failure(err)), nil
	}
	return v.yield(), nil
}

// yield says what the script did since the last yield. It ends when the default function has thrown, or has returned and
// every request has been settled: work that was started is finished even if nobody awaits it, so that its failure shows.
func (v *vm) yield() Yield {
	v.answerChecks()
	switch v.main.State() {
	case goja.PromiseStateRejected:
		return v.end(v.rejected(v.main))
	case goja.PromiseStateFulfilled:
		if len(v.pending) > 0 {
			return v.take(nil)
		}
		if failure := v.firstUnhandled(); failure != nil {
			return v.end(failure)
		}
		return v.take(&End{Value: json.RawMessage(v.main.Result().String())})
	}
	if len(v.pending) > 0 {
		return v.take(nil)
	}
	if failure := v.firstUnhandled(); failure != nil {
		return v.end(failure)
	}
	return v.end(&Failure{Kind: Deadlock, Message: "the script waits for something that can never happen: it awaits a promise, " +
		"and no call of a primitive is under way that could settle it (a `new Promise` whose resolve is never called, for example)"})
}

// firstUnhandled returns the first rejection that the script never handled. It is asked only at the end: a promise that
// is awaited later than it was rejected is handled.
func (v *vm) firstUnhandled() *Failure {
	for _, promise := range v.unhandled {
		if promise != v.main {
			return v.rejected(promise)
		}
	}
	return nil
}

func (v *vm) rejected(p *goja.Promise) *Failure { return v.thrown(p.Result(), nil) }

func (v *vm) end(err error) Yield {
	failure := &Failure{}
	if !errors.As(err, &failure) {
		failure = &Failure{Kind: Crashed, Message: err.Error()}
	}
	if failure.File == "" {
		failure.File = v.source.Name
	}
	return v.take(&End{Failure: failure})
}

func (v *vm) take(end *End) Yield {
	y := Yield{Requests: v.fresh, Checks: v.answered, Heard: v.heard, End: end}
	v.fresh, v.answered = nil, nil
	v.ended = v.ended || end != nil
	return y
}
