package script

import (
	"encoding/json"
	"strings"
	"testing"
)

// returned runs a script that asks for nothing and returns a value.
func returned(t *testing.T, text, input string) string {
	t.Helper()
	r := started(t, NewHost(Limits{}), text, input)
	if r.last.End == nil || r.last.End.Failure != nil {
		t.Fatalf("the script did not end well: %+v", r.last.End)
	}
	return string(r.last.End.Value)
}

// A value crosses the border twice and comes back as the canonical form that RFC 8785 gives it; integers stay exact.
func TestValuesCrossTheBorderExactly(t *testing.T) {
	cases := map[string]string{
		`{"b":1,"a":[true,null,"x"]}`: `{"a":[true,null,"x"],"b":1}`,
		`{"\u20ac":"E","\r":"CR","\ufb33":"D","1":"One","\ud83d\ude00":"S","\u0080":"C","\u00f6":"O"}`:// RFC 8785 §3.2.3
		"{\"\\r\":\"CR\",\"1\":\"One\",\"\u0080\":\"C\",\"ö\":\"O\",\"€\":\"E\",\"😀\":\"S\",\"\ufb33\":\"D\"}",
		`[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001]`:           `[333333333.3333333,1e+30,4.5,0.002,1e-27]`, // §3.2.2
		`"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"`:                             `"€$\u000f\nA'B\"\\\\\"/"`,                  // §3.2.2
		`[9007199254740991,9007199254740993,-12345678901234567890]`:                   `[9007199254740991,9007199254740993,-12345678901234567890]`,
		`{"n":12345678901234567890,"f":1234567890123456.5,"s":"a,12345678901234567"}`: `{"f":1234567890123456.5,"n":12345678901234567890,"s":"a,12345678901234567"}`,
		`{"__proto__":{"x":12345678901234567890}}`:                                    `{"__proto__":{"x":12345678901234567890}}`,
		`[[],{},"",[{"a":{"b":[1234567890123456789]}}]]`:                              `[[],{},"",[{"a":{"b":[1234567890123456789]}}]]`,
	}
	for input, out := range cases {
		t.Run(input, func(t *testing.T) {
			want(t, returned(t, `export default (input: any) => input`, input), out)
		})
	}
}

func TestBigIntegersArriveAsBigInt(t *testing.T) {
	want(t, returned(t, `export default (n: any) => [typeof n[0], typeof n[1], n[1] + 1n, String(n[0])]`, `[9007199254740991,9007199254740992]`),
		`["number","bigint",9007199254740993,"9007199254740991"]`)
}

func TestWhatIsNoJSONIsRefusedByName(t *testing.T) {
	cases := map[string]string{
		`{ a: [() => 1] }`:  "log2.value.a[0] is a function",
		`{ a: NaN }`:        "log2.value.a is NaN, which JSON cannot say",
		`[1 / 0]`:           "log2.value[0] is Infinity",
		`[undefined]`:       "log2.value[0] is undefined",
		`Symbol("x")`:       "log2.value is a symbol",
		`new Map()`:         "log2.value is a Map or Set",
		`undefined`:         `log2.value is undefined, for "x"`,
		`{ a: /x/g }`:       "log2.value.a is of the type RegExp",
		`new Error("no")`:   "log2.value is of the type Error",
		`new Uint8Array(2)`: "log2.value is of the type Uint8Array",
		`["a\ud83d"]`:       "log2.value[0] has half of a character",
		`{ "\udc00b": 1 }`:  "has half of a character",
		`(() => { const a: any = {}; a.b = { a }; return a })()`: "log2.value.b.a contains itself",
	}
	for value, message := range cases {
		f := failed(t, NewHost(Limits{}), `import { output } from "loopkeeper"; export default () => { output("x", `+value+`) }`)
		if want := strings.Replace(message, "log2", "output", 1); !strings.Contains(f.Message, want) || f.Line != 1 {
			t.Errorf("%s: %v, want %q", value, f, want)
		}
	}
	want(t, returned(t, `import { log } from "loopkeeper"; export default () => { log("x\ud83d", "😀"); return ["\\ud83d", "\\\\udc00", "😀"] }`, `{}`),
		`["\\ud83d","\\\\udc00","😀"]`)
	want(t, returned(t, `export default () => ({ a: undefined, d: new Date(0), same: [[], []].map((x) => x) })`, `{}`),
		`{"d":"1970-01-01T00:00:00.000Z","same":[[],[]]}`)
}

// What an object is in JSON is what JSON.stringify makes of it, where that is not nothing.
func TestObjectsOfAllKindsLeaveAsJSONHasThem(t *testing.T) {
	for text, form := range map[string]string{
		`[-0, 1e21, 1e-7, 0.1 + 0.2, 5n]`:                                             `[0,1e+21,1e-7,0.30000000000000004,5]`,
		`Object.assign(Object.create(null), { b: 1, a: 2 })`:                          `{"a":2,"b":1}`,
		`new (class P { x = 1; get y() { return 2 } static z = 3 })()`:                `{"x":1}`,
		`{ get a() { return "got" }, b: { toJSON() { return ["made"] } } }`:           `{"a":"got","b":["made"]}`,
		`new Proxy({ a: 1 }, { get: () => 2 })`:                                       `{"a":2}`,
		`[new Proxy([1, 2], {}), new (class extends Array {})(3).fill(0)]`:            `[[1,2],[0,0,0]]`,
		`Object.defineProperty({ a: 1 }, "hidden", { value: 2 })`:                     `{"a":1}`,
		`{ [Symbol("s")]: 1, 10: "ten", 9: "nine", "\u00e9": "\ufffd", "\ufffd": 1 }`: `{"10":"ten","9":"nine","é":"�","�":1}`,
		`Array(3000).fill(0).reduce((inner) => [inner], 0)[0].length`:                 `1`,
	} {
		want(t, returned(t, `export default () => (`+text+`)`, `{}`), form)
	}
	for text, message := range map[string]string{
		`[1, , 3]`:       "output.value[1] is undefined",
		`new String("")`: "output.value is of the type String",
		`{ a: { toJSON() { throw new Error("no form") } } }`:                                        "no form",
		`(() => { const again = () => ({ toJSON: again }); return again() })()`:                     "nested deeper",
		`[Array(5000).fill(0).reduce((inner) => [inner], 0)]`:                                       "nested deeper",
		`new Proxy({}, { ownKeys() { throw new Error("locked") } })`:                                "locked",
		`(() => { const p = Proxy.revocable([], {}); p.revoke(); return p.proxy })()`:               "revoked",
		`(() => { class Odd { get [Symbol.toStringTag]() { return "Odd" } }; return new Odd() })()`: "is of the type Odd",
	} {
		f := failed(t, NewHost(Limits{}), `import { output } from "loopkeeper"; export default () => { output("x", `+text+`) }`)
		if !strings.Contains(f.Message, message) || f.Line != 1 {
			t.Errorf("%s: %v, want %q", text, f, message)
		}
	}
}

// Values come as JSON.parse makes them, whatever a script has done to the prototypes.
func TestValuesArriveAsTheirOwn(t *testing.T) {
	want(t, returned(t, `import { generate } from "loopkeeper";
		const set = () => { throw new Error("a setter saw it") };
		for (const name of ["a", "x", "pos", "objects"]) Object.defineProperty(Object.prototype, name, { set, get: () => undefined });
		export default (input: any) => [input.a === Infinity, Object.keys(input).join(), Object.getPrototypeOf(input.l) === Array.prototype, typeof input.big, Object.keys(input.l[1])]`,
		`{"b":{"x":1},"a":1e400,"10":0,"9":0,"l":[-0.0,{"__proto__":1}],"big":-9007199254740992}`), `[true,"9,10,a,b,big,l",true,"bigint",["__proto__"]]`)
}

func TestCanonicalIsTheLibrarysForm(t *testing.T) {
	for _, text := range []string{`{"b":1, "a":{"😀":1,"\ufb33":2,"\u2028":"\u007f\u001f"}}`, ` [1.50, 12345678901234567890] `, `"<&>"`} {
		got, err := Canonical([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Canonical(got)
		if err != nil || string(again) != string(got) || !json.Valid(got) {
			t.Errorf("Canonical(%s) = %s, again %s, %v", text, got, again, err)
		}
		if !strings.Contains(text, "1.50") { // numbers are left as written
			want(t, returned(t, `export default (x: any) => x`, text), string(got))
		}
	}
	for _, text := range []string{``, `{`, `1 2`, `{"a":}`, `"\ud83d"`, `["\udc00\ud83d"]`, `{"\ud83dx":1}`, `"\ud83d\u0041"`, "\"\xff\""} {
		if got, err := Canonical([]byte(text)); err == nil {
			t.Errorf("Canonical(%q) = %s", text, got)
		}
	}
}

func TestEachCollectsAndGoesOn(t *testing.T) {
	r := started(t, NewHost(Limits{}), `import { each, generate } from "loopkeeper";
export default async () => {
  const r = await each(["a", "b", "c", "d"], async (item, i) => {
    if (i === 3) throw new TypeError("no d");
    return (await generate({ model: "m", prompt: item, schema: {} })) as number;
  }, { concurrency: 2, key: (item) => item + "!", label: "letters" });
  return [r, r.values, r.failures];
}`, `{}`)
	want(t, lines(r.last.Requests), "generate {\"model\":\"m\",\"prompt\":\"a\",\"schema\":{}}\ngenerate {\"model\":\"m\",\"prompt\":\"b\",\"schema\":{}}")
	want(t, lines(r.fail(1, "empty_turn", "no b").Requests), `generate {"model":"m","prompt":"c","schema":{}}`)
	if y := r.value(2, "3"); len(y.Requests) != 0 || y.End != nil {
		t.Errorf("yield = %+v", y)
	}
	y := r.value(0, "1")
	want(t, lines(y.Requests[:1]), `collected {"failures":[{"key":"b!","kind":"empty_turn","message":"no b","step":1},{"key":"d!","kind":"threw","message":"no d"}],"label":"letters"}`)
	want(t, string(y.End.Value), `[{"coverage":0.5,"failed":2,"items":[{"index":0,"key":"a!","status":"succeeded","value":1},`+
		`{"failure":{"kind":"empty_turn","message":"no b","step":1},"index":1,"key":"b!","status":"failed"},`+
		`{"index":2,"key":"c!","status":"succeeded","value":3},{"failure":{"kind":"threw","message":"no d"},"index":3,"key":"d!","status":"failed"}],`+
		`"succeeded":2,"total":4},[1,3],[{"index":1,"key":"b!","kind":"empty_turn","message":"no b","step":1},{"index":3,"key":"d!","kind":"threw","message":"no d"}]]`)
}

func TestEachOfNothing(t *testing.T) {
	want(t, returned(t, `import { each } from "loopkeeper"; export default () => each([], () => 1)`, `{}`),
		`{"coverage":1,"failed":0,"items":[],"succeeded":0,"total":0}`)
}

func TestAllReturnsNamedValues(t *testing.T) {
	want(t, returned(t, `import { all } from "loopkeeper"; export default () => all({ b: Promise.resolve(1), a: () => 2, c: async () => [3] })`, `{}`),
		`{"a":2,"b":1,"c":[3]}`)
}

func TestABatchHasViewsThatAreNotInItsJSON(t *testing.T) {
	r := started(t, NewHost(Limits{}), `import { batch, output } from "loopkeeper";
export default async (input: any) => {
  const r = await batch({ model: "m", prompt: "{{item}}", items: input, evaluate: { criteria: "good", model: "j" } });
  output("first", r.values[0]);
  output("failed", r.failures);
  return r;
}`, `["x","y"]`)
	want(t, lines(r.last.Requests), `batch {"evaluate":{"criteria":["good"],"model":"j"},"items":["x","y"],"model":"m","prompt":"{{item}}"}`)
	delivered := `{"coverage":0.5,"failed":1,"items":[{"bytes":4,"index":0,"key":"0","ref":"ab","status":"succeeded"},{"failure":{"kind":"sent_back","message":"bad"},"index":1,"key":"1","status":"failed"}],"succeeded":1,"total":2}`
	y := r.value(0, delivered)
	want(t, lines(y.Requests), `output {"name":"first","sources":[0],"value":{"bytes":4,"name":"0","ref":"ab"}}
output {"name":"failed","sources":[0],"value":[{"index":1,"key":"1","kind":"sent_back","message":"bad"}]}
output {"name":"result","sources":[0],"value":`+delivered+`}`)
	want(t, string(y.End.Value), delivered)
}

func TestOutputsFindTheirSources(t *testing.T) {
	r := started(t, NewHost(Limits{}), `import { generate, read, output } from "loopkeeper";
export default async () => {
  const list: any = await generate({ model: "m", prompt: "1", schema: {} });
  const text = await read("r");
  await generate({ model: "m", prompt: "2" });
  output("part", { deep: [list.items[1]] });
  output("text", text);
  output("both", [text, list.items[0]]);
  output("made", "new", { sources: [list] });
  output("unknown", "new");
}`, `{}`)
	r.value(0, `{"items":[{"a":1},{"a":2}]}`)
	r.value(1, `"`+strings.Repeat("long text ", 100)+`"`)
	var got []string
	for _, request := range r.value(2, `{"bytes":1,"name":"n","ref":"x"}`).Requests {
		var body struct {
			Name     string
			Sources  []int
			Inferred bool
		}
		if err := json.Unmarshal(request.Body, &body); err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(body)
		got = append(got, string(text))
	}
	want(t, strings.Join(got, "\n"), `{"Name":"part","Sources":[0],"Inferred":false}
{"Name":"text","Sources":[1],"Inferred":false}
{"Name":"both","Sources":[0,1],"Inferred":false}
{"Name":"made","Sources":[0],"Inferred":false}
{"Name":"unknown","Sources":[0,1,2],"Inferred":true}`)
}

func TestLogLinesOfTheLoadComeFirst(t *testing.T) {
	r := started(t, NewHost(Limits{}), `import { log } from "loopkeeper";
console.warn("at load", { b: 1, a: [2n] });
export default () => { log("run", new RangeError("no"), undefined); log.error(() => 1 as any) }`, `{}`)
	want(t, lines(r.last.Requests), `log {"level":"warn","text":"at load {\"a\":[2],\"b\":1}"}
log {"level":"info","text":"run RangeError: no undefined"}
log {"level":"error","text":"() => 1"}`)
}

func TestUUIDsAreVersion4AndDiffer(t *testing.T) {
	want(t, returned(t, `import { uuid } from "loopkeeper";
export default () => {
  const all = Array.from({ length: 200 }, uuid);
  return [new Set(all).size, all.every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id))];
}`, `{}`), `[200,true]`)
}

func TestCompareNamesTheFirstDifference(t *testing.T) {
	recorded := Request{Pos: 3, Kind: "generate", Body: []byte(`{"model":"m","prompt":"a < b"}`)}
	escaped := recorded
	escaped.Body = []byte(`{"model":"m","prompt":"a \u003c b"}`)
	if err := Compare(escaped, recorded); err != nil {
		t.Errorf("the same body with other escapes: %v", err)
	}
	for name, c := range map[string]struct {
		got  Request
		want string
	}{
		"kind": {Request{Pos: 3, Kind: "plan", Body: recorded.Body}, "position 3: the ledger has generate, the script asked for plan"},
		"body": {Request{Pos: 3, Kind: "generate", Body: []byte(`{"model":"m","prompt":"a < c"}`)}, `byte 27 of the request: the ledger has "\":\"m\",\"prompt\":\"a < b\"}", the script`},
		"pos":  {Request{Pos: 4, Kind: "generate", Body: recorded.Body}, "got position 4"},
	} {
		err := Compare(recorded, c.got)
		if d, ok := err.(*Divergence); !ok || d.Pos != 3 || !strings.Contains(err.Error(), strings.TrimPrefix(c.want, "position 3: ")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
