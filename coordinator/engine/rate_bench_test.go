package engine

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

// durable is how many commits of one event each the disk makes a second now.
func durable(b *testing.B, s ledger.Store) float64 {
	const n = 300
	row := ledger.RunRow{ID: "floor", Workflow: "floor", State: string(run.Completed), Created: time.Now(), Summary: json.RawMessage(`{}`)}
	began := time.Now()
	seq, err := s.Head(b.Context(), "floor")
	next := int64(1)
	if err == nil {
		next = seq.Seq + 1
	}
	for i := range int64(n) {
		c := ledger.Commit{Runs: []ledger.RunRow{row}, Events: []ledger.Event{{RunID: "floor", Seq: next + i, Time: time.Now(), Kind: "run.logged", Payload: json.RawMessage(`{"pos":0,"body":{"text":"a line of about the size of an event"}}`)}}}
		if err := s.Append(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	return n / time.Since(began).Seconds()
}

// benchmarkRate runs a script and reports its items per second, and that against the disk's single durable commits of the same minute.
func benchmarkRate(b *testing.B, body string, n int) {
	p := flow(b, body)
	store, err := ledger.Open(b.Context(), ledger.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	f := newFarm(4)
	f.takes = func(Attempt) time.Duration { return 0 }
	for _, m := range f.nodes {
		m.Slots = 16
		m.Pools[0].Total.N, m.Pools[0].Free.N = 64*gib, 60*gib
	}
	e := New(Options{Store: store, Host: script.NewHost(script.Limits{})})
	f.sink = e
	if err := e.Start(b.Context(), f, f); err != nil {
		b.Fatal(err)
	}
	do := func(n int) time.Duration {
		began := time.Now()
		id, _, err := e.Submit(b.Context(), Submission{Workflow: "flow", Program: p, Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))})
		if err != nil {
			b.Fatal(err)
		}
		views, err := e.Watch(b.Context(), id)
		if err != nil {
			b.Fatal(err)
		}
		var last View
		for v := range views {
			last = v
		}
		if last.Status != run.Completed {
			b.Fatalf("%s: %s", last.Status, last.Error)
		}
		return time.Since(began)
	}
	do(200) // the models are loaded now
	var rate, floor float64
	for b.Loop() {
		before := durable(b, store)
		rate += float64(n) / do(n).Seconds()
		floor += (before + durable(b, store)) / 2
	}
	b.ReportMetric(rate/float64(b.N), "items/s")
	b.ReportMetric(rate/floor, "of-disk")
	e.Stop()
	f.wg.Wait()
}

// BenchmarkSequentialSteps is one commit per step.
func BenchmarkSequentialSteps(b *testing.B) {
	benchmarkRate(b, `for (let i = 0; i < input.n; i++) await generate({ model: "small:8b", prompt: "p" + i, schema: Answer });`, 1000)
}

// BenchmarkFanOut is a batch with a result and a verdict per item.
func BenchmarkFanOut(b *testing.B) {
	benchmarkRate(b, `const items = []; for (let i = 0; i < input.n; i++) items.push("item " + i);
  return (await batch({ items, model: "small:8b", prompt: "{{item}}", schema: Answer, evaluate: { criteria: ["it is good"], model: "judge:8b" } })).succeeded;`, 3000)
}
