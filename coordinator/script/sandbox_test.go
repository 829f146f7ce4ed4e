package script

import (
	"strings"
	"testing"
)

// Every way that is known to make code from text, or to reach what a replay could not repeat.
func TestNothingEscapesTheSandbox(t *testing.T) {
	const noCode = "is not available in a workflow: code cannot be made from text"
	cases := map[string]string{
		`eval("1")`:                                                                                noCode,
		`(0, eval)("1")`:                                                                           noCode,
		`globalThis["ev" + "al"]("1")`:                                                             noCode,
		`new Function("return 1")()`:                                                               noCode,
		`Function("return 1")()`:                                                                   noCode,
		`(function () {}).constructor("return 1")()`:                                               noCode,
		`(() => 1).constructor("return 1")()`:                                                      noCode,
		`(class {}).constructor("return 1")()`:                                                     noCode,
		`({ m() {} }).m.constructor("return 1")()`:                                                 noCode,
		`Object.constructor("return 1")()`:                                                         noCode,
		`[].map.constructor("return 1")()`:                                                         noCode,
		`(async function () {}).constructor("return 1")()`:                                         noCode,
		`(async () => 1).constructor("return 1")()`:                                                noCode,
		`(function* () {}).constructor("yield 1")()`:                                               noCode,
		`new ((function* () {}).constructor as any)("yield 1")`:                                    noCode,
		`Object.getPrototypeOf(async function () {}).constructor("return 1")`:                      noCode,
		`Object.getPrototypeOf(function* () {}).constructor("yield 1")`:                            noCode,
		`Reflect.construct(Function, ["return 1"])`:                                                noCode,
		`Reflect.construct(Object, ["return 1"], Function)()`:                                      "requires that 'this' be a Function",
		`Reflect.construct((function () {}).constructor, ["return 1"])`:                            noCode,
		`Reflect.getPrototypeOf(function () {})!.constructor("return 1")`:                          noCode,
		`Reflect.get(Function.prototype, "constructor").call(null, "return 1")`:                    noCode,
		`Function.prototype.constructor.apply(null, ["return 1"])`:                                 noCode,
		`Function.bind(null, "return 1")()()`:                                                      noCode,
		`new (class extends Function { constructor() { super("return 1") } } as any)()`:            noCode,
		`(Object.getOwnPropertyDescriptor(Function.prototype, "constructor") as any).value("1")`:   noCode,
		`new Proxy(function () {}, {}).constructor("return 1")()`:                                  noCode,
		`JSON.parse('{"a":1}', function () { return (this as any).constructor.constructor("1") })`: noCode,
		`"a".replace("a", (0 as any).constructor.constructor("return 1"))`:                         noCode,
		`delete (Function.prototype as any).constructor; (function () {}).constructor("1")`:        "Cannot delete property",
		`Object.defineProperty(Function.prototype, "constructor", { value: 1 })`:                   "Cannot redefine property",
		`(globalThis as any).Function = 1`:                                                         "Cannot assign to read only property",
		`Symbol.prototype.constructor.constructor("1")`:                                            noCode,
		`(generate as any).constructor("1")`:                                                       noCode,
		`Object.getPrototypeOf((function* () {}).prototype).constructor("1")`:                      "requires that 'this' be a Function",
		`new ((async function () {}) as any).__proto__.constructor("1")`:                           noCode,
		`require("fs")`:                      "cannot import",
		`(globalThis as any).require("fs")`:  "use import with",
		`fetch("http://example.org")`:        "there is no network",
		`new WebSocket("ws://x")`:            "there is no network",
		`setInterval(() => {}, 1)`:           "there are no timers",
		`process.exit(1)`:                    "process is not defined",
		`new WeakRef({})`:                    "WeakRef is not defined",
		`new FinalizationRegistry(() => {})`: "FinalizationRegistry is not defined",
		`__loopkeeper_request("read", "{}")`: "__loopkeeper_request is not defined",
		`__loopkeeper_program.run("{}")`:     "Cannot read property 'run' of undefined",
		`(globalThis as any).module.exports`: "Cannot read property 'exports' of undefined",
	}
	host := NewHost(Limits{})
	for code, want := range cases {
		t.Run(code, func(t *testing.T) {
			text := "import { generate } from 'loopkeeper';\nexport default async () => {\n  const made: any = " + code + ";\n  return String(made) + typeof generate;\n}"
			if strings.HasPrefix(code, "delete") {
				text = "import { generate } from 'loopkeeper';\nexport default async () => {\n  " + code + ";\n  generate;\n}"
			}
			if p, err := BundleText("flow.ts", text); err != nil {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("bundle: %v", err)
				}
			} else if f := failedProgram(t, host, p); !strings.Contains(f.Message, want) {
				t.Errorf("message %q lacks %q", f.Message, want)
			}
		})
	}
}

// The globals are listed, so that a new version of the interpreter cannot add a door unseen.
func TestGlobalsAreTheKnownOnes(t *testing.T) {
	r := started(t, NewHost(Limits{}), `export default () => Object.getOwnPropertyNames(globalThis).sort().join(" ")`, `{}`)
	want(t, string(r.last.End.Value), `"AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError EventSource `+
		`Float32Array Float64Array Function GoError Infinity Int16Array Int32Array Int8Array JSON Map Math NaN Number Object Promise `+
		`Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TypeError URIError Uint16Array Uint32Array `+
		`Uint8Array Uint8ClampedArray WeakMap WeakSet WebSocket XMLHttpRequest __loopkeeper_program clearInterval clearTimeout console `+
		`decodeURI decodeURIComponent encodeURI encodeURIComponent escape eval fetch globalThis isFinite isNaN parseFloat parseInt `+
		`require setImmediate setInterval setTimeout undefined unescape"`)
}

func TestFunctionStaysUsableAsAType(t *testing.T) {
	r := started(t, NewHost(Limits{}), `export default () => [(() => 1) instanceof Function, typeof Function.prototype.call]`, `{}`)
	want(t, string(r.last.End.Value), `[true,"function"]`)
}

func TestRandomIsSplitMix64(t *testing.T) {
	next := splitMix64(1234567) // vectors of https://rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := next(); got != want {
			t.Errorf("output %d = %d, want %d", i, got, want)
		}
	}
}
