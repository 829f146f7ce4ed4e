package script

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"
)

const loop = `import { generate } from "loopkeeper";
export default async () => { for (;;) await generate({ model: "m", prompt: "p" }) }`

// A child's start and one message to it and back, against the same in this process.
func BenchmarkStart(b *testing.B) {
	program, err := BundleText("flow.ts", loop)
	if err != nil {
		b.Fatal(err)
	}
	for name, host := range hosts(Limits{}) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s, _, err := host.Start(context.Background(), Start{Program: program})
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
	}
}

func BenchmarkDeliver(b *testing.B) {
	program, err := BundleText("flow.ts", loop)
	if err != nil {
		b.Fatal(err)
	}
	for name, host := range hosts(Limits{}) {
		b.Run(name, func(b *testing.B) {
			s, _, err := host.Start(context.Background(), Start{Program: program})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			for pos := 0; b.Loop(); pos++ {
				if _, err := s.Deliver(context.Background(), Delivery{Pos: pos, Value: json.RawMessage(`{"ref":"r","name":"n","bytes":1}`)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// stepwise makes steps one after the other; each prompt rests on the answer before.
const stepwise = `import { generate } from "loopkeeper";
export default async ({ steps }: { steps: number }) => {
  let last: any = null;
  for (let i = 0; i < steps; i++) last = await generate({ model: "m", prompt: "step " + i, item: last, label: "s" + i });
  return last;
}`

// replayed gives a script all the answers of a run of so many steps, one after the other.
func replayed(tb testing.TB, host Host, program Program, steps int) {
	tb.Helper()
	ctx := context.Background()
	s, y, err := host.Start(ctx, Start{Program: program, Input: json.RawMessage(fmt.Sprintf(`{"steps":%d}`, steps))})
	if err != nil {
		tb.Fatal(err)
	}
	defer s.Close()
	given := make([]Delivery, steps)
	for pos := range given {
		given[pos] = Delivery{Pos: pos, Time: anchor, Value: json.RawMessage(fmt.Sprintf(`{"bytes":1,"facts":{"model":"m","node":"n"},"name":"n","ref":"r%d"}`, pos))}
	}
	yields, err := s.DeliverAll(ctx, given)
	if err != nil || len(yields) != steps {
		tb.Fatalf("%d yields, %v", len(yields), err)
	}
	y = yields[steps-1]
	if y.End == nil || y.End.Failure != nil {
		tb.Fatalf("the script did not end well: %+v", y.End)
	}
}

// bare is the least that such a run costs in this interpreter: a loop that awaits, and JSON in and out.
func bare(tb testing.TB, steps int) {
	tb.Helper()
	js := goja.New()
	var resolve func(any) error
	request := func(string) goja.Value {
		p, r, _ := js.NewPromise()
		resolve = r
		return js.ToValue(p)
	}
	if err := js.Set("request", request); err != nil {
		tb.Fatal(err)
	}
	if _, err := js.RunString(fmt.Sprintf(`(async () => { let last = null; for (let i = 0; i < %d; i++)
		last = JSON.parse(await request(JSON.stringify({ model: "m", prompt: "step " + i, item: last, label: "s" + i }))) })()`, steps)); err != nil {
		tb.Fatal(err)
	}
	for i := range steps {
		if err := resolve(fmt.Sprintf(`{"bytes":1,"facts":{"model":"m","node":"n"},"name":"n","ref":"r%d"}`, i)); err != nil {
			tb.Fatal(err)
		}
	}
}

// What the figures of BenchmarkReplay are to be compared with: on a busy machine both grow.
func BenchmarkBare(b *testing.B) {
	const steps = 10_000
	before := cpuTime()
	for b.Loop() {
		bare(b, steps)
	}
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N*steps), "cpu-µs/step")
}

// The whole of a replay: the start of the script and every answer of its run.
func BenchmarkReplay(b *testing.B) {
	program, err := BundleText("flow.ts", stepwise)
	if err != nil {
		b.Fatal(err)
	}
	for name, host := range hosts(Limits{}) {
		for _, steps := range []int{1000, 3000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, steps), func(b *testing.B) {
				before := cpuTime()
				for b.Loop() {
					replayed(b, host, program, steps)
				}
				b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N*steps), "cpu-µs/step")
			})
		}
	}
}

// A replay of N steps costs N, not N². It is measured in CPU time, which a busy machine does not change much.
func TestReplayIsLinear(t *testing.T) {
	program := bundled(t, stepwise)
	cost := func(steps int) time.Duration {
		least := time.Hour
		for range 3 {
			before := cpuTime()
			replayed(t, NewHost(Limits{CPU: time.Hour}), program, steps)
			least = min(least, cpuTime()-before)
		}
		return least
	}
	cost(100)
	few, many := cost(500), cost(4000)
	t.Logf("500 steps took %v, 4000 took %v of CPU time", few, many)
	if many > 16*few {
		t.Errorf("8 times the steps cost %.1f times the CPU time; a linear replay costs 8 times, a quadratic one 64", float64(many)/float64(few))
	}
}

// A batch of many references in and out of the script.
func BenchmarkLargeBatch(b *testing.B) {
	items := `{"bytes":12345,"name":"docs/a-file.md","ref":"0123456789012345678901234567890123456789012345678901234567890123"}`
	input := "[" + strings.Repeat(items+",", 9999) + items + "]"
	program, err := BundleText("flow.ts", `import { batch } from "loopkeeper"; export default (items: any) => batch({ model: "m", prompt: "{{item}}", items })`)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(input)))
	for b.Loop() {
		s, _, err := NewHost(Limits{}).Start(context.Background(), Start{Program: program, Input: json.RawMessage(input)})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
