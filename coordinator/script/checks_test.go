package script

import (
	"encoding/json"
	"strings"
	"testing"
)

// ask has the script judge one value of a step.
func (r *run) ask(pos, item int, value string) Yield {
	r.t.Helper()
	return r.deliver(Delivery{Pos: pos, Item: item, Check: true, Value: json.RawMessage(value)})
}

// answers shows what a script's checks said, one a line.
func answers(y Yield) string {
	text := ""
	for _, c := range y.Checks {
		text += string(c.Request().Body) + "\n"
	}
	return text
}

const checking = `import { batch, generate, plan, read } from "loopkeeper";
export default async (input: { files: any[] }) => {
  const found = batch({
    model: "m", prompt: "{{item}}", items: input.files, schema: {},
    check: async (value: any, file, i) => {
      if (value.deep) return (await read(file)).includes(value.quote) || "the quote is not in " + file.name;
      return value.ok ? true : ["no " + file.name, "item " + i];
    },
  });
  const text = generate({ model: "m", prompt: "p", check: (text) => text.bytes > 3 && "facts" in text && Object.keys(text).join() });
  const steps = plan({ model: "m", goal: "g", check: (plan) => plan.steps.length > 0 });
  return [await found, await text, await steps];
}`

const checkingInput = `{"files":[{"bytes":1,"name":"a.md","ref":"aa"},{"bytes":1,"name":"b.md","ref":"bb"}]}`

func TestAChecksAnswerComesBesideTheRequests(t *testing.T) {
	onBoth(t, func(t *testing.T, host Host) {
		r := started(t, host, checking, checkingInput)
		want(t, lines(r.last.Requests), `
batch {"check":true,"items":[{"bytes":1,"name":"a.md","ref":"aa"},{"bytes":1,"name":"b.md","ref":"bb"}],"model":"m","prompt":"{{item}}","schema":{}}
generate {"check":true,"model":"m","prompt":"p"}
plan {"check":true,"goal":"g","model":"m"}`)
		want(t, answers(r.ask(0, 1, `{"ok":false}`)), `{"pos":0,"item":1,"passed":false,"reasons":["no b.md","item 1"]}`)
		want(t, answers(r.ask(0, 1, `{"ok":true}`)), `{"pos":0,"item":1,"passed":true}`)
		want(t, answers(r.ask(1, 0, `{"bytes":4,"facts":{},"name":"n","ref":"r"}`)), `{"pos":1,"passed":false,"reasons":["bytes,name,ref"]}`)
		want(t, answers(r.ask(2, 0, `{"order":[],"steps":[]}`)), `{"pos":2,"passed":false,"reasons":["it did not pass the workflow's check"]}`)

		// A check that opens a text is answered after the text has come, and others go on meanwhile.
		y := r.ask(0, 0, `{"deep":true,"quote":"here"}`)
		want(t, lines(y.Requests)+answers(y), `read {"ref":"aa"}`)
		want(t, answers(r.ask(0, 1, `{"ok":true}`)), `{"pos":0,"item":1,"passed":true}`)
		y = r.value(3, `"nothing"`)
		want(t, answers(y), `{"pos":0,"passed":false,"reasons":["the quote is not in a.md"]}`)
		if y.Heard != 7 {
			t.Errorf("heard = %d, want the 6 checks and the text", y.Heard)
		}
		r.value(0, `{"coverage":1,"failed":0,"items":[],"succeeded":0,"total":0}`)
		r.value(1, `{"bytes":4,"facts":{},"name":"n","ref":"r"}`)
		if y := r.value(2, `{"order":[],"steps":[]}`); y.End == nil || y.End.Failure != nil {
			t.Errorf("end = %+v", y.End)
		}
	})
}

// A check with a mistake says nothing about the value: no attempt of a model is spent on it, and its line is named.
func TestACheckThatFailsIsNoSendBack(t *testing.T) {
	onBoth(t, func(t *testing.T, host Host) {
		for program, wants := range map[string]string{
			"(value: any) => {\n  return value.x.y;\n}":                           `flow.ts:3:18: TypeError: Cannot read property 'y' of undefined`,
			"(() => undefined) as any":                                            `TypeError: a check returns true, false, a reason, or a list`,
			"(() => new Promise(() => {})) as any":                                `flow.ts: the check waits for something that can never happen`,
			"(() => { const e: any = {}; throw e }) as any":                       `flow.ts: uncaught [object Object]`,
			"((value: any) => read('r').then(() => { throw new Error('late') }))": `Error: late`,
		} {
			r := started(t, host, "import { generate, read } from 'loopkeeper'; read;\nexport default () => generate({ model: 'm', prompt: 'p', schema: {}, check: "+program+" })", `{}`)
			y := r.ask(0, 0, `{"a":1}`)
			if len(y.Requests) > 0 {
				y = r.value(1, `"text"`)
			}
			if len(y.Checks) != 1 || y.Checks[0].Passed || y.Checks[0].Failure == nil || !strings.Contains(y.Checks[0].Failure.Error(), wants) {
				t.Errorf("%s: %+v", program, y)
				continue
			}
			if y := r.value(0, "1"); y.End == nil || y.End.Failure != nil {
				t.Errorf("%s: the step that was checked ended the script with %+v", program, y.End)
			}
		}
	})
}

func TestACheckHasTheLimitsOfAnyStep(t *testing.T) {
	for name, host := range hosts(Limits{CPU: 300e6}) {
		t.Run(name, func(t *testing.T) {
			r := started(t, host, "import { generate } from 'loopkeeper';\nexport default () => generate({ model: 'm', prompt: 'p', check: () => {\n  for (;;) Math.abs(1);\n} })", `{}`)
			f := r.ask(0, 0, `{"bytes":1,"name":"n","ref":"r"}`).End.Failure
			if f == nil || f.Kind != CPULimit || f.Line != 3 || !strings.Contains(f.Message, "script.cpu") {
				t.Errorf("failure = %v", f)
			}
		})
	}
}

func TestAReplayComparesTheAnswersOfChecks(t *testing.T) {
	recorded := Checked{Pos: 3, Item: 7, Reasons: []string{"too long"}}
	again := Checked{Pos: 3, Item: 7, Passed: true}
	if err := Compare(recorded.Request(), recorded.Request()); err != nil {
		t.Error(err)
	}
	err := Compare(recorded.Request(), again.Request())
	if err == nil || !strings.Contains(err.Error(), `position 3 (check of item 7)`) || !strings.Contains(err.Error(), "too long") {
		t.Errorf("another answer gave %v", err)
	}
}

func TestTheCheckPrimitive(t *testing.T) {
	r := started(t, NewHost(Limits{}), `import { check, generate } from "loopkeeper";
export default async () => {
  const even = (n: number) => n % 2 === 0 || n + " is odd";
  const made = await check((feedback, attempt) => generate<number>({ model: "m", prompt: "p", schema: {}, ...(attempt > 1 && { feedback }) }), even, { attempts: 2, label: "even" });
  const kept = await check(4, even);
  try { await check(() => 5, even, { attempts: 2 }) } catch (e) { return [made, kept, e.kind, e.reasons] }
}`, `{}`)
	want(t, lines(r.value(0, "3").Requests), `
log {"level":"info","text":"even: sent back (1 of 2): 3 is odd"}
generate {"feedback":["3 is odd"],"model":"m","prompt":"p","schema":{}}`)
	y := r.value(2, "8")
	want(t, string(y.End.Value), `[8,4,"sent_back",["5 is odd"]]`)
}

// The lines of a batch are not in the script, so that a check is handed its own.
func TestACheckOverLinesIsGivenItsLine(t *testing.T) {
	onBoth(t, func(t *testing.T, host Host) {
		r := started(t, host, `import { batch, lines } from "loopkeeper";
export default (input: any) => batch({ model: "m", prompt: "{{item}}", items: lines(input), schema: {},
  check: (value: any, item: any, i) => value.n === item.n || i + ": " + JSON.stringify(item) });`, `{"bytes":9,"name":"a.jsonl","ref":"aa"}`)
		about := func(i int, value, line string) string {
			return answers(r.deliver(Delivery{Pos: 0, Item: i, Check: true, Value: json.RawMessage(value), About: json.RawMessage(line)}))
		}
		want(t, about(7, `{"n":12345678901234567890}`, `{"n":12345678901234567890}`), `{"pos":0,"item":7,"passed":true}`)
		want(t, about(8, `{"n":1}`, `{"b":2,"a":1}`), `{"pos":0,"item":8,"passed":false,"reasons":["8: {\"a\":1,\"b\":2}"]}`)
		want(t, about(0, `{"n":1}`, `"a text"`), `{"pos":0,"passed":false,"reasons":["0: \"a text\""]}`)
	})
}
