package script

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

const reviewing = `/** Reviews one text. */
import { generate, evaluate, output, read, now, uuid, t } from "loopkeeper";
const Finding = t.object({ line: t.integer(), problem: t.string() });
export const params = t.object({ text: t.file(), limit: t.optional(t.integer()) });
export default async function review(input: t.Of<typeof params>) {
  console.log("start", input.text.name, now(), uuid().length, Math.random() < 1);
  const found = await generate({ model: "m", prompt: "Review {{item}}", item: input.text, schema: t.array(Finding) });
  const verdict = await evaluate({ model: "j", criteria: "true", subject: found });
  output("findings", { found, at: now() });
  return verdict.verdict + " " + (await read(input.text)).length;
}`

func TestASessionFromStartToEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, host Host) {
		r := started(t, host, reviewing, `{"text":{"bytes":3,"name":"a.md","ref":"ab"}}`)
		want(t, lines(r.last.Requests), `
log {"level":"info","text":"start a.md \"2026-01-02T03:04:05.000Z\" 36 true"}
generate {"item":{"bytes":3,"name":"a.md","ref":"ab"},"model":"m","prompt":"Review {{item}}","schema":{"items":{"additionalProperties":false,"properties":{"line":{"type":"integer"},"problem":{"type":"string"}},"required":["line","problem"],"type":"object"},"type":"array"}}`)
		want(t, lines(r.value(1, `[{"line":1,"problem":"<x>"}]`).Requests), `
evaluate {"criteria":["true"],"model":"j","subject":[{"line":1,"problem":"<x>"}]}`)
		want(t, lines(r.value(2, `{"verdict":"passed","reasons":[],"facts":[],"opinions":[]}`).Requests), `
output {"name":"findings","sources":[1],"value":{"at":"2026-01-02T03:04:07.000Z","found":[{"line":1,"problem":"<x>"}]}}
read {"ref":"ab"}`)
		end := r.value(4, `"abc"`)
		want(t, lines(end.Requests), `
output {"inferred":true,"name":"result","sources":[1,2,4],"value":"passed 3"}`)
		if end.End == nil || string(end.End.Value) != `"passed 3"` {
			t.Fatalf("end = %+v", end.End)
		}
	})
}

func TestDescribe(t *testing.T) {
	onBoth(t, func(t *testing.T, host Host) {
		got, err := host.Describe(context.Background(), bundled(t, reviewing))
		if err != nil {
			t.Fatal(err)
		}
		want(t, got.Description, "Reviews one text.")
		want(t, string(got.ParamsSchema), `{"additionalProperties":false,"properties":{"limit":{"type":"integer"},"text":{"format":"file",`+
			`"properties":{"bytes":{"type":"integer"},"name":{"type":"string"},"ref":{"type":"string"}},"required":["ref"],"type":"object"}},"required":["text"],"type":"object"}`)
	})
}

func TestDescribeReportsWhatFailsAtLoad(t *testing.T) {
	onBoth(t, func(t *testing.T, host Host) {
		for text, want := range map[string]string{
			"export const n = 1;\nthrow new Error('no');\nexport default () => 1": "flow.ts:2:7: Error: no",
			"export const params = {};": "flow.ts: Error: flow.ts has no default function",
		} {
			var f *Failure
			if _, err := host.Describe(context.Background(), bundled(t, text)); !errors.As(err, &f) || !strings.HasPrefix(f.Error(), want) {
				t.Errorf("%s gave %v", text, err)
			}
		}
	})
}

func TestAMissingEntryIsNotFound(t *testing.T) {
	var e *apierr.Error
	if _, err := Bundle("testdata/nothing.ts"); !errors.As(err, &e) || e.Code != apierr.NotFound || !strings.Contains(err.Error(), "testdata/nothing.ts") {
		t.Errorf("error = %v", err)
	}
}

// Same start and deliveries, same bytes; another order of deliveries, other requests.
func TestRequestsFollowTheDeliveriesAlone(t *testing.T) {
	const program = `
import { generate, each, uuid } from "loopkeeper";
export default async () => {
  await each(["a", "b", "c"], async (item) => {
    const x = await generate({ model: "m", prompt: item });
    await generate({ model: "m", prompt: item + uuid() + Date.now(), context: [x] });
  });
  return [Math.random(), new Date()];
}`
	play := func(t *testing.T, host Host, order ...int) string {
		r := started(t, host, program, `{}`)
		text := lines(r.last.Requests)
		for _, pos := range order {
			text += lines(r.value(pos, `{"bytes":1,"name":"n","ref":"r"}`).Requests)
		}
		if r.last.End == nil || r.last.End.Failure != nil {
			t.Fatalf("the script did not end well: %+v", r.last.End)
		}
		return text
	}
	both := hosts(Limits{})
	first := play(t, both["in process"], 0, 1, 2, 3, 4, 5)
	want(t, play(t, both["in process"], 0, 1, 2, 3, 4, 5), first)
	want(t, play(t, both["child"], 0, 1, 2, 3, 4, 5), first)
	if play(t, both["in process"], 1, 0, 2, 3, 4, 5) == first {
		t.Error("another order of deliveries made the same requests")
	}
}

func TestDeliveriesThatNobodyWaitsFor(t *testing.T) {
	onBoth(t, func(t *testing.T, host Host) {
		r := started(t, host, `import { generate } from "loopkeeper"; export default () => generate({ model: "m", prompt: "p" });`, `{}`)
		if _, err := r.session.Deliver(context.Background(), Delivery{Pos: 9}); err == nil || !strings.Contains(err.Error(), "no request is waiting") {
			t.Errorf("a delivery for position 9 gave %v", err)
		}
		if y := r.value(0, `{"bytes":1,"name":"n","ref":"r"}`); y.End == nil || y.End.Failure != nil {
			t.Errorf("the wrong delivery broke the session: %+v", y.End)
		}
		if _, err := r.session.Deliver(context.Background(), Delivery{Pos: 0}); err == nil {
			t.Error("a second delivery for position 0 was accepted")
		}
	})
}

func TestUnawaitedWorkIsFinishedBeforeTheEnd(t *testing.T) {
	const program = `import { generate } from "loopkeeper";
export default async () => { generate({ model: "m", prompt: "p" }); return 1; }`
	onBoth(t, func(t *testing.T, host Host) {
		r := started(t, host, program, `{}`)
		if r.last.End != nil {
			t.Fatal("the script ended with a request under way")
		}
		if y := r.value(0, `"x"`); y.End == nil || string(y.End.Value) != "1" {
			t.Errorf("end = %+v, want 1", y.End)
		}
		failed := started(t, host, program, `{}`)
		if y := failed.fail(0, "empty_turn", "nothing came"); y.End == nil || y.End.Failure == nil || y.End.Failure.Kind != Threw {
			t.Errorf("an unhandled failure ended the script with %+v", y.End)
		}
	})
}

// Many deliveries at once are what one after the other is: up to the end, and up to one that nobody waits for.
func TestDeliverAllIsDeliverForEach(t *testing.T) {
	onBoth(t, func(t *testing.T, host Host) {
		const steps = 600 // more than one message to a child
		r := started(t, host, stepwise, `{"steps":600}`)
		given := make([]Delivery, steps+1)
		for i := range given {
			given[i] = Delivery{Pos: i, Time: anchor, Value: json.RawMessage(`7`)}
		}
		yields, err := r.session.DeliverAll(context.Background(), given)
		if err != nil || len(yields) != steps || yields[steps-1].End == nil || yields[steps-1].Heard != steps {
			t.Fatalf("%d yields, %v", len(yields), err)
		}
		want(t, lines(yields[300].Requests), `generate {"item":7,"label":"s301","model":"m","prompt":"step 301"}`)
		other := started(t, host, stepwise, `{"steps":2}`)
		if _, err := other.session.DeliverAll(context.Background(), []Delivery{given[0], given[5]}); err == nil || !strings.Contains(err.Error(), "no request is waiting") {
			t.Errorf("a delivery that nobody waits for gave %v", err)
		}
	})
}

func TestPartsOfAReplay(t *testing.T) {
	small, large := Delivery{Value: json.RawMessage("1")}, Delivery{Value: make(json.RawMessage, replayBytes)}
	for name, c := range map[string]struct {
		given []Delivery
		want  []int
	}{
		"nothing": {nil, nil},
		"many":    {slices.Repeat([]Delivery{small}, 2*replayPart+1), []int{replayPart, replayPart, 1}},
		"large":   {[]Delivery{small, large, large, small, small}, []int{1, 1, 1, 2}},
	} {
		var got []int
		for part := range parts(c.given) {
			got = append(got, len(part))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestCancelledContextEndsTheSession(t *testing.T) {
	onBoth(t, func(t *testing.T, host Host) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, _, err := host.Start(ctx, Start{Program: bundled(t, `export default () => 1`)}); err != context.Canceled {
			t.Errorf("start gave %v, want context.Canceled", err)
		}
	})
}

// want compares texts without leading and trailing white space.
func want(t *testing.T, got, want string) {
	t.Helper()
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
