package script

import (
	"testing"
)

const flow = `import { approve, each, gate, generate, pipeline, question } from "loopkeeper";
const ask = (prompt: string) => generate<any>({ model: "m", prompt, schema: {} });
export default () => pipeline({
  name: "dev", inputs: { goal: "G", rules: "R" }, max_rollbacks: 2,
  phases: [
    { name: "clarify", needs: ["goal"], async run({ goal, ...others }, at) {
      const { answer } = await question({ text: goal + "? " + Object.keys(others) });
      return answer + at.round;
    } },
    { name: "design", needs: ["clarify", "rules"],
      run: ({ clarify, rules }, at) => ask([clarify, rules, at.round, at.previous, ...at.reasons.map((r) => r.from + ": " + r.reason)].join(" ")),
      gate: (value) => value === "vague" ? gate.sent_back("clarify", "it is vague") : value === "bold" ? gate.needs_human("it is bold", { back_to: "clarify" }) : gate.passed() },
    { name: "build", needs: ["design"], async run({ design }) {
      const parts = await each(["x", "y"], (part) => ask(design + part));
      return parts.failed > 0 ? gate.sent_back("design", "it cannot be built") : parts.values;
    } },
  ],
})`

func TestAPipelineDoesWhatThePhaseMachineSays(t *testing.T) {
	r := started(t, NewHost(Limits{}), flow, `{}`)
	want(t, lines(r.last.Requests), `phase {"max_rollbacks":2,"phases":["clarify","design","build"],"pipeline":"dev"}`)
	want(t, lines(r.value(0, `{"phase":"clarify","reasons":[],"round":1}`).Requests), `question {"text":"G? "}`)
	want(t, lines(r.value(1, `{"answer":"A","by":"ann","timed_out":false}`).Requests), `phase {"done":{"outcome":"passed","phase":"clarify"},"pipeline":"dev"}`)
	want(t, lines(r.value(2, `{"phase":"design","reasons":[],"round":1}`).Requests), `generate {"model":"m","prompt":"A1 R 1 ","schema":{}}`)
	want(t, lines(r.value(3, `"vague"`).Requests), `phase {"done":{"outcome":"sent_back","phase":"design","reason":"it is vague","target":"clarify"},"pipeline":"dev"}`)
	want(t, lines(r.value(4, `{"phase":"clarify","reasons":[{"by":"","from":"design","reason":"it is vague"}],"round":2}`).Requests), `question {"text":"G? "}`)
	want(t, lines(r.value(5, `{"answer":"B","by":"ann","timed_out":false}`).Requests), `phase {"done":{"outcome":"passed","phase":"clarify"},"pipeline":"dev"}`)
	want(t, lines(r.value(6, `{"phase":"design","reasons":[],"round":2}`).Requests), `generate {"model":"m","prompt":"B2 R 2 vague","schema":{}}`)
	want(t, lines(r.value(7, `"bold"`).Requests), `phase {"done":{"outcome":"needs_human","phase":"design","reason":"it is bold"},"pipeline":"dev"}`)
	want(t, lines(r.value(8, `{"phase":"design","reasons":[],"round":2}`).Requests), asksAPerson)
	want(t, lines(r.value(9, `{"answer":"pass","by":"ann","timed_out":false}`).Requests), `phase {"done":{"outcome":"passed","phase":"design"},"pipeline":"dev"}`)
	want(t, lines(r.value(10, `{"phase":"build","reasons":[],"round":1}`).Requests), `generate {"model":"m","prompt":"boldx","schema":{}}
generate {"model":"m","prompt":"boldy","schema":{}}`)
	r.value(11, `1`)
	want(t, lines(r.value(12, `2`).Requests), `phase {"done":{"outcome":"passed","phase":"build"},"pipeline":"dev"}`)
	want(t, string(r.value(13, `{"phase":null,"reasons":[],"round":1}`).End.Value), `{"build":[1,2],"clarify":"B2","design":"bold"}`)
}

// A person's way back gives up the phase in progress where it is: nothing of it goes on, not even code that catches errors,
// and what fails of it later changes nothing.
func TestAPhaseThatWasRolledBackIsGivenUp(t *testing.T) {
	onBoth(t, func(t *testing.T, host Host) {
		r := started(t, host, flow, `{}`)
		r.value(0, `{"phase":"clarify","reasons":[],"round":1}`)
		r.value(1, `{"answer":"A","by":"ann","timed_out":false}`)
		r.value(2, `{"phase":"design","reasons":[],"round":1}`)
		r.value(3, `"good"`)
		want(t, lines(r.value(4, `{"phase":"build","reasons":[],"round":1}`).Requests), `generate {"model":"m","prompt":"goodx","schema":{}}
generate {"model":"m","prompt":"goody","schema":{}}`)
		want(t, lines(r.fail(5, "rolled_back", "the phase was rolled back").Requests), `phase {"pipeline":"dev"}`)
		if y := r.fail(6, "rolled_back", "the phase was rolled back"); len(y.Requests) > 0 || y.End != nil {
			t.Errorf("the second step of the phase that was given up made %+v", y)
		}
		want(t, lines(r.value(7, `{"phase":"design","reasons":[{"by":"ann","from":"build","reason":"no tests"}],"round":2}`).Requests),
			`generate {"model":"m","prompt":"A1 R 2 good build: no tests","schema":{}}`)
		r.value(8, `"better"`)
		r.value(9, `{"phase":"build","reasons":[],"round":2}`)
		r.value(10, `1`)
		r.value(11, `2`)
		want(t, string(r.value(12, `{"phase":null,"reasons":[],"round":2}`).End.Value), `{"build":[1,2],"clarify":"A1","design":"better"}`)
	})
}

func TestAPhaseIsGivenUpWhileAPersonIsAsked(t *testing.T) {
	r := started(t, NewHost(Limits{}), flow, `{}`)
	r.value(0, `{"phase":"clarify","reasons":[],"round":1}`)
	r.value(1, `{"answer":"A","by":"ann","timed_out":false}`)
	r.value(2, `{"phase":"design","reasons":[],"round":1}`)
	r.value(3, `"bold"`)
	// The way back came before the question: the answer names the target, and its reasons come with the request without `done`.
	want(t, lines(r.value(4, `{"phase":"clarify","reasons":[{"by":"ann","from":"design","reason":"other goal"}],"round":2}`).Requests), `phase {"pipeline":"dev"}`)
	want(t, lines(r.value(5, `{"phase":"clarify","reasons":[{"by":"ann","from":"design","reason":"other goal"}],"round":2}`).Requests), `question {"text":"G? "}`)
	r.value(6, `{"answer":"A","by":"ann","timed_out":false}`)
	r.value(7, `{"phase":"design","reasons":[],"round":2}`)
	r.value(8, `"bold"`)
	want(t, lines(r.value(9, `{"phase":"design","reasons":[],"round":2}`).Requests), asksAPerson)
	// And here a person sends it back.
	want(t, lines(r.value(10, `{"answer":"back to clarify","by":"ann","comment":"too bold","timed_out":false}`).Requests),
		`phase {"done":{"outcome":"sent_back","phase":"design","reason":"too bold","target":"clarify"},"pipeline":"dev"}`)
}

// asksAPerson is the question of flow's second phase when its gate leaves it to a person.
const asksAPerson = `question {"choices":["pass","back to clarify","stop"],"label":"dev: design",` +
	`"text":"dev, phase design: it is bold. Does it pass, go back (a comment says why), or stop here?"}`

// Where the gate names no way back, every earlier phase is one; what the gate said is the reason where the person says none.
func TestAPersonDecidesWhereAPhaseGoes(t *testing.T) {
	const three = `import { gate, pipeline } from "loopkeeper";
export default () => pipeline({ name: "dev", phases: [
  { name: "a", run: () => 1 }, { name: "b", run: () => 2 }, { name: "c", run: () => 3, gate: () => gate.of({ verdict: "needs_human", reasons: ["x", "y"] }) } ] })`
	for answer, wanted := range map[string]string{
		`"back to b","by":"ann"`:                 `phase {"done":{"outcome":"sent_back","phase":"c","reason":"x; y","target":"b"},"pipeline":"dev"}`,
		`"back to a","by":"ann","comment":"why"`: `phase {"done":{"outcome":"sent_back","phase":"c","reason":"why","target":"a"},"pipeline":"dev"}`,
		`"pass","by":"ann"`:                      `phase {"done":{"outcome":"passed","phase":"c"},"pipeline":"dev"}`,
		`"stop","by":"ann","comment":"enough"`:   "Error: phase c was stopped: enough",
	} {
		r := started(t, NewHost(Limits{}), three, `{}`)
		for i, phase := range []string{"a", "b", "c", "c"} {
			r.value(i, `{"phase":"`+phase+`","reasons":[],"round":1}`)
		}
		want(t, lines(r.last.Requests), `question {"choices":["pass","back to a","back to b","stop"],"label":"dev: c","text":"dev, phase c: x; y. Does it pass, go back (a comment says why), or stop here?"}`)
		y := r.value(4, `{"answer":`+answer+`,"timed_out":false}`)
		got := lines(y.Requests)
		if y.End != nil && y.End.Failure != nil {
			got = y.End.Failure.Message
		}
		want(t, got, wanted)
	}
}

func TestAPhaseThatThrowsEndsThePipeline(t *testing.T) {
	r := started(t, NewHost(Limits{}), `import { pipeline, gate } from "loopkeeper";
export default async () => {
  const flow = (name: string, run: any, check?: any) => pipeline({ name, phases: [{ name: "a", run, gate: check }] });
  const said: string[] = [];
  const first = flow("one", () => { throw new Error("broken") }).catch((e) => said.push(e.message));
  await flow("two", () => 1).catch((e) => said.push(e.message));
  await first;
  await flow("three", () => 1, () => true).catch((e) => said.push(e.message));
  await flow("four", () => gate.of({ verdict: "sent_back", reasons: ["r"], facts: [], opinions: [] })).catch((e) => said.push(e.message));
  return said;
}`, `{}`)
	begun := `{"phase":"a","reasons":[],"round":1}`
	r.value(0, begun)
	r.value(1, begun)
	y := r.value(2, begun)
	want(t, string(y.End.Value), `["a run has one pipeline in progress at a time; spawn a run for another","broken",`+
		`"the gate of phase a must return gate.passed(), gate.sent_back(…), gate.needs_human(…) or gate.of(evaluation)",`+
		`"phase a was sent back, and its gate names no target: gate.of(evaluation, { back_to: \"…\" })"]`)
}
