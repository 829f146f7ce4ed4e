package script

import (
	"fmt"
	"strings"
	"testing"
)

// Every primitive that is one request: what it asks for, and what the script is given.
func TestPrimitivesAskForWhatTheContractSays(t *testing.T) {
	cases := map[string]struct{ call, request, value, got string }{
		"sleep":          {`sleep(90)`, `sleep {"seconds":90}`, `null`, `null`},
		"sleep until":    {`sleep({ until: new Date(Date.UTC(2026, 0, 3)), label: "night" })`, `sleep {"label":"night","until":"2026-01-03T00:00:00.000Z"}`, `null`, `null`},
		"approve one":    {`approve({ title: "Send?", show: "Dear Ann" })`, `approve {"show":["Dear Ann"],"title":"Send?"}`, `{"by":"ann","comment":"","outcome":"approved","timed_out":false}`, `{"by":"ann","comment":"","outcome":"approved","timed_out":false}`},
		"approve":        {`approve({ title: "Send?", will: "It is sent", show: [{ a: 1 }], timeout_seconds: 60, on_timeout: "rejected" })`, `approve {"on_timeout":"rejected","show":[{"a":1}],"timeout_seconds":60,"title":"Send?","will":"It is sent"}`, `{"by":"ann","comment":"no","outcome":"rejected","timed_out":false}`, `{"by":"ann","comment":"no","outcome":"rejected","timed_out":false}`},
		"question":       {`question({ text: "Which?", choices: ["a", "b"] })`, `question {"choices":["a","b"],"text":"Which?"}`, `{"answer":"b","by":"ann","timed_out":false}`, `{"answer":"b","by":"ann","timed_out":false}`},
		"tool":           {`tool("file.write", { path: "x" }, { retry: { attempts: 2 }, uses: ["disk"], label: "w" })`, `tool {"input":{"path":"x"},"label":"w","name":"file.write","retry":{"attempts":2},"uses":["disk"]}`, `{"bytes":3}`, `{"bytes":3}`},
		"spawn":          {`spawn({ workflow: "map", input: { n: 1 }, key: "k", limits: { calls: 5 } })`, `spawn {"input":{"n":1},"key":"k","limits":{"calls":5},"workflow":"map"}`, `{"coverage":0.5,"failures":[],"outputs":{},"run":"r1","shortfalls":[],"state":"failed"}`, `{"coverage":0.5,"failures":[],"outputs":{},"run":"r1","shortfalls":[],"state":"failed"}`},
		"spawn detached": {`spawn({ workflow: "map", input: {}, detached: true })`, `spawn {"detached":true,"input":{},"workflow":"map"}`, `{"run":"r2"}`, `{"run":"r2"}`},
		"embed":          {`embed({ model: "e", inputs: ["a"] })`, `embed {"inputs":["a"],"model":"e"}`, `{"vectors":[[1,2]]}`, `[[1,2]]`},
		"lines":          {`batch({ model: "m", prompt: "{{item}}", items: lines({ ref: "aa", name: "d.jsonl", bytes: 9 }), reuse: true })`, `batch {"items":{"lines":{"bytes":9,"name":"d.jsonl","ref":"aa"}},"model":"m","prompt":"{{item}}","reuse":true}`, `{"coverage":1,"failed":0,"handle":0,"succeeded":5000,"total":5000}`, `{"coverage":1,"failed":0,"handle":0,"succeeded":5000,"total":5000}`},
		"models":         {`generate({ model: ["a", "small"], prompt: "p", schema: {}, evaluate: { criteria: [{ text: "t", absence: true }, "u"], model: ["b", "c"] } })`, `generate {"evaluate":{"criteria":[{"absence":true,"text":"t"},"u"],"model":["b","c"]},"model":["a","small"],"prompt":"p","schema":{}}`, `1`, `1`},
		"plan":           {`plan({ model: "p", goal: "g", parts: ["a"], inputs: ["i"], lists: [{ name: "l", count: 2 }], facts: ["f"], leads: undefined })`, `plan {"facts":["f"],"goal":"g","inputs":["i"],"lists":[{"count":2,"name":"l"}],"model":"p","parts":["a"]}`, `{"outcome":"impossible"}`, `{"outcome":"impossible"}`},
		"evaluate":       {`evaluate({ model: ["a", "b"], criteria: { text: "t", must: false }, code: [{ name: "n", passed: true }], subject: null, author: "w" })`, `evaluate {"author":"w","code":[{"name":"n","passed":true}],"criteria":[{"must":false,"text":"t"}],"model":["a","b"],"subject":null}`, `{"verdict":"passed"}`, `{"verdict":"passed"}`},
		"a role":         {`generate({ model: "judge", prompt: "p", schema: {} })`, `generate {"model":"judge","prompt":"p","schema":{}}`, `1`, `1`},
	}
	const text = `import { approve, batch, embed, evaluate, generate, lines, plan, question, sleep, spawn, tool } from "loopkeeper";
void [approve, batch, embed, evaluate, generate, lines, plan, question, sleep, spawn, tool];
export default async () => (await %s) ?? null`
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := started(t, NewHost(Limits{}), fmt.Sprintf(text, c.call), `{}`)
			want(t, lines(r.last.Requests), c.request)
			want(t, string(r.value(0, c.value).End.Value), c.got)

			failing := started(t, NewHost(Limits{}), fmt.Sprintf(text, c.call), `{}`)
			f := failing.fail(0, "some_kind", "it broke").End.Failure
			if f == nil || f.Line != 3 || !strings.HasSuffix(f.Message, "it broke") {
				t.Errorf("a failed step gave %v", f)
			}
		})
	}
}

// TestATextSaysWhoWroteIt to its judges, unless the script does: under another name and in a list too. Of others nobody knows.
func TestATextSaysWhoWroteIt(t *testing.T) {
	r := started(t, NewHost(Limits{}), `import { evaluate, generate } from "loopkeeper";
export default async () => {
  const text = await generate({ model: "small", prompt: "p" });
  await evaluate({ model: "j", criteria: "c", subject: text });
  await evaluate({ model: "j", criteria: "c", subject: text, author: "another" });
  await evaluate({ model: "j", criteria: "c", subject: ["a title", { ref: text.ref, name: "draft", bytes: 1 }] });
  await evaluate({ model: "j", criteria: "c", subject: { ref: text.ref, name: "draft", bytes: 1 } });
  await evaluate({ model: "j", criteria: "c", subject: { ref: "y", name: "n", bytes: 1 } });
  await evaluate({ model: "j", criteria: "c", subject: "x" });
}`, `{}`)
	const text = `{"bytes":1,"name":"n","ref":"x"}`
	want(t, lines(r.value(0, `{"bytes":1,"facts":{"model":"qwen3:8b"},"name":"n","ref":"x"}`).Requests), `evaluate {"author":"qwen3:8b","criteria":["c"],"model":"j","subject":`+text+`}`)
	want(t, lines(r.value(1, `{}`).Requests), `evaluate {"author":"another","criteria":["c"],"model":"j","subject":`+text+`}`)
	want(t, lines(r.value(2, `{}`).Requests), `evaluate {"author":"qwen3:8b","criteria":["c"],"model":"j","subject":["a title",{"bytes":1,"name":"draft","ref":"x"}]}`)
	want(t, lines(r.value(3, `{}`).Requests), `evaluate {"author":"qwen3:8b","criteria":["c"],"model":"j","subject":{"bytes":1,"name":"draft","ref":"x"}}`)
	want(t, lines(r.value(4, `{}`).Requests), `evaluate {"criteria":["c"],"model":"j","subject":{"bytes":1,"name":"n","ref":"y"}}`)
	want(t, lines(r.value(5, `{}`).Requests), `evaluate {"criteria":["c"],"model":"j","subject":"x"}`)
}

func TestMisuseIsNamedAtItsLine(t *testing.T) {
	cases := map[string]string{
		`sleep({})`:                         "sleep needs seconds or until",
		`waive({ index: 1 } as any, "why")`: "waive needs a failure",
		`waive("a.md", "")`:                 "waive needs a reason",
		`cover(["a"], "unknown")`:           "is nothing that a step delivered",
		`pages(3 as any)`:                   "pages needs the result of a batch",
		`until({ state: 0, reached: () => true, round: (n) => n } as any)`:                    "until needs rounds",
		`until({ state: 0, reached: () => 1, round: (n) => n, rounds: 1 } as any)`:            "reached must return true or false",
		`generate({ model: "m", prompt: "p", check: true } as any)`:                           "check must be a function",
		`check(1, (() => null) as any)`:                                                       "a check returns true, false, a reason",
		`pipeline({ name: "p", phases: [{ name: "a", needs: ["b"], run() {} }] })`:            "phase a needs b, which is no input and no earlier phase",
		`pipeline({ name: "p", phases: [{ name: "a", run() {} }, { name: "a", run() {} }] })`: "two phases or inputs have the name a",
	}
	for call, message := range cases {
		f := failed(t, NewHost(Limits{}), "import { check, cover, generate, pages, pipeline, sleep, until, waive } from 'loopkeeper';\n"+
			"void [check, cover, generate, pages, pipeline, sleep, until, waive];\nexport default async () => {\n  await "+call+";\n}")
		if f.Line != 4 || !strings.Contains(f.Message, message) {
			t.Errorf("%s: %v, want line 4 and %q\n%s", call, f, message, f.Stack)
		}
	}
}

func TestUntilStopsAtTheStateOrAtTheBound(t *testing.T) {
	const text = `import { until, generate } from "loopkeeper";
export default async ({ rounds }: { rounds: number }) => {
  const ended = await until({ label: "green", state: 9, rounds, reached: (n) => n === 0,
    round: (n, round) => generate<number>({ model: "m", prompt: n + "/" + round, schema: {} }) });
  const other = await until({ label: "green", state: 0, rounds: 0, reached: (n) => n === 0, round: (n) => n });
  return [ended, other];
}`
	r := started(t, NewHost(Limits{}), text, `{"rounds":2}`)
	want(t, lines(r.last.Requests), `until {"label":"green","reached":false,"round":0}
generate {"model":"m","prompt":"9/1","schema":{}}`)
	want(t, lines(r.value(1, "4").Requests), `until {"label":"green","reached":false,"round":1}
generate {"model":"m","prompt":"4/2","schema":{}}`)
	y := r.value(3, "3")
	want(t, lines(y.Requests[:2]), `until {"label":"green","reached":false,"round":2}
until {"label":"green (2)","reached":true,"round":0}`)
	want(t, string(y.End.Value), `[{"reached":false,"rounds":2,"state":3},{"reached":true,"rounds":0,"state":0}]`)
}

const handled = `{"coverage":0,"failed":2,"items":[{"failure":{"kind":"sent_back","message":"bad"},"index":0,"key":"a","status":"failed"},` +
	`{"failure":{"kind":"empty_turn","message":"none"},"index":1,"key":"b","status":"failed"}],"succeeded":0,"total":2}`

func TestWhatBecomesOfAFailureIsDeclared(t *testing.T) {
	r := started(t, NewHost(Limits{}), `import { all, batch, cover, each, expect, fallback, generate, spawn, waive } from "loopkeeper";
const ask = (prompt: string) => generate<number[]>({ model: "m", prompt, schema: {} });
export default async () => {
  expect(["a", "b", "c"]);
  const found = await batch({ model: "m", prompt: "{{item}}", items: ["x", "y"] });
  waive(found.failures[0], "known");
  await fallback(found.items[1], ({ index }) => ask("again"));
  const one = await fallback(() => ask("small"), (failure) => ask(failure.kind));
  cover(["c"], one);
  cover(["d"]);
  waive("e", "left out on purpose");
  try { await ask("caught") } catch (error) { waive(error as any, "not needed") }
  waive(await spawn({ workflow: "w", input: {} }), "it is only news");
  for (const failure of (await each(["i"], () => { throw new Error("own") })).failures) waive(failure, "mine");
  return fallback(() => all({ p: ask("p"), q: ask("q") }), () => "constant");
}`, `{}`)
	want(t, lines(r.last.Requests), `expect {"keys":["a","b","c"]}
batch {"items":["x","y"],"model":"m","prompt":"{{item}}"}`)
	want(t, lines(r.value(1, handled).Requests), `waive {"item":0,"reason":"known","step":1}
generate {"model":"m","prompt":"again","schema":{}}`)
	want(t, lines(r.value(3, `5`).Requests), `fallback {"by":3,"item":1,"step":1}
generate {"model":"m","prompt":"small","schema":{}}`)
	want(t, lines(r.fail(5, "empty_turn", "nothing").Requests), `generate {"model":"m","prompt":"empty_turn","schema":{}}`)
	want(t, lines(r.value(6, `[7]`).Requests), `fallback {"by":6,"step":5}
cover {"keys":["c"],"step":6}
cover {"keys":["d"]}
waive {"key":"e","reason":"left out on purpose"}
generate {"model":"m","prompt":"caught","schema":{}}`)
	want(t, lines(r.fail(11, "sent_back", "bad").Requests), `waive {"reason":"not needed","step":11}
spawn {"input":{},"workflow":"w"}`)
	want(t, lines(r.value(13, `{"coverage":0,"failures":[],"outputs":{},"run":"r","shortfalls":[],"state":"failed"}`).Requests), `
waive {"reason":"it is only news","step":13}
collected {"failures":[{"key":"0","kind":"threw","message":"own"}],"label":"each"}
waive {"key":"0","reason":"mine"}
generate {"model":"m","prompt":"p","schema":{}}
generate {"model":"m","prompt":"q","schema":{}}`)
	r.fail(17, "deadline", "late")
	y := r.fail(18, "deadline", "late too")
	want(t, lines(y.Requests[:2]), `waive {"reason":"the workflow has a value of its own for it","step":17}
waive {"reason":"the workflow has a value of its own for it","step":18}`)
	want(t, string(y.End.Value), `"constant"`)
}

func TestALargeBatchIsWalkedInPages(t *testing.T) {
	r := started(t, NewHost(Limits{}), `import { batch, output, pages, waive } from "loopkeeper";
export default async () => {
  const found = await batch({ model: "m", prompt: "{{item}}", items: ["x"], schema: {} });
  const seen: any[] = [];
  for (const name of ["items", "values", "failures"]) try { (found as any)[name] } catch (e) { seen.push(e.message) }
  for await (const page of pages(found, { count: 2 })) for (const item of page) seen.push(item.key);
  for await (const page of pages(found, { only: "failed" })) { waive(page[0], "one of many"); output("page", page) }
  return { found, seen };
}`, `{}`)
	want(t, lines(r.value(0, `{"coverage":0.9,"failed":1,"handle":0,"succeeded":1999,"total":2000}`).Requests),
		`page {"count":2,"from":0,"step":0}`)
	want(t, lines(r.value(1, `{"items":[{"index":0,"key":"a","status":"succeeded","value":1},{"index":1,"key":"b","status":"succeeded","value":2}],"next":2}`).Requests),
		`page {"count":2,"from":2,"step":0}`)
	want(t, lines(r.value(2, `{"items":[{"index":2,"key":"c","status":"succeeded","value":3}],"next":null}`).Requests),
		`page {"count":1000,"from":0,"only":"failed","step":0}`)
	y := r.value(3, `{"items":[{"failure":{"kind":"k","message":"m"},"index":7,"key":"h","status":"failed"}],"next":null}`)
	want(t, lines(y.Requests[:2]), `waive {"item":7,"reason":"one of many","step":0}
output {"name":"page","sources":[0],"value":[{"failure":{"kind":"k","message":"m"},"index":7,"key":"h","status":"failed"}]}`)
	const hint = "this batch has 2000 items, more than a script holds at once, so it has no `%s`: walk them with `for await (const page of pages(result))`, " +
		"or the failures with `pages(result, { only: \\\"failed\\\" })`"
	want(t, string(y.End.Value), `{"found":{"coverage":0.9,"failed":1,"handle":0,"succeeded":1999,"total":2000},"seen":["`+
		fmt.Sprintf(hint, "items")+`","`+fmt.Sprintf(hint, "values")+`","`+fmt.Sprintf(hint, "failures")+`","a","b","c"]}`)
}

// A small batch is walked in the same way, without a request.
func TestPagesOfASmallBatchAndOfASource(t *testing.T) {
	r := started(t, NewHost(Limits{}), `import { batch, pages, tool } from "loopkeeper";
export default async () => {
  const sizes: any[] = [];
  const found = await batch({ model: "m", prompt: "{{item}}", items: ["x", "y"] });
  for await (const page of pages(found, { count: 1 })) sizes.push(page.map((item) => item.key));
  for await (const page of pages(found, { only: "succeeded" })) sizes.push(page);
  for await (const page of pages<string>((token) => tool("list", { token }), { most: 2, label: "mail" })) sizes.push(page);
  try { for await (const _ of pages((token) => ({ items: [], next: 7 }))); } catch (e) { sizes.push(e.message) }
  return sizes;
}`, `{}`)
	want(t, lines(r.value(0, handled).Requests), `tool {"input":{"token":null},"name":"list"}`)
	want(t, lines(r.value(1, `{"items":["m1"],"next":"t1"}`).Requests), `tool {"input":{"token":"t1"},"name":"list"}`)
	y := r.value(2, `{"items":["m2"],"next":"t2"}`)
	want(t, lines(y.Requests[:1]), `collected {"failures":[{"key":"page 3","kind":"bound_reached","message":"there is more after 2 pages; the bound is the option \"most\""}],"label":"mail"}`)
	want(t, string(y.End.Value), `[["a"],["b"],["m1"],["m2"],"pages: page 2 names itself as the next page"]`)
}
