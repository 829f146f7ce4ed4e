package engine

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

// BenchmarkNextCallAfterAKill is the time from Start to the next call of a run with 1,000 events, whose timer is due: its state is folded,
// its script replayed, the timer fires, the script asks, and the call is placed and durable before it leaves.
func BenchmarkNextCallAfterAKill(b *testing.B) {
	p := flow(b, `for (let i = 0; i < 245; i++) await generate({ model: "small:8b", prompt: "p" + i, schema: Answer });
  for (;;) { await sleep(0.2); await generate({ model: "small:8b", prompt: "next", schema: Answer }); }`)
	store, err := ledger.Open(b.Context(), ledger.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	f := newFarm(1)
	sent := make(chan struct{}, 1000)
	f.takes = func(Attempt) time.Duration { sent <- struct{}{}; return time.Microsecond }
	host := script.NewHost(script.Limits{})
	start := func() *Engine {
		e := New(Options{Store: store, Host: host})
		f.mu.Lock()
		f.sink = e
		f.mu.Unlock()
		if err := e.Start(b.Context(), f, f); err != nil {
			b.Fatal(err)
		}
		return e
	}
	e := start()
	id, _, err := e.Submit(b.Context(), Submission{Workflow: "flow", Program: p, Input: json.RawMessage(`{}`)})
	if err != nil {
		b.Fatal(err)
	}
	for range 246 {
		<-sent
	}
	events := int64(0)
	for b.Loop() {
		b.StopTimer()
		for { // it waits for its timer, so that all that comes next is due
			if v, err := e.Run(b.Context(), id); err != nil || v.Status == run.Waiting {
				break
			}
			time.Sleep(time.Millisecond)
		}
		e.Stop()
		f.wg.Wait()
		for len(sent) > 0 {
			<-sent
		}
		s, err := load(b.Context(), store, id)
		if err != nil {
			b.Fatal(err)
		}
		events = s.Seq
		time.Sleep(time.Until(s.NextTimer()))
		b.StartTimer()
		e = start()
		<-sent
	}
	b.ReportMetric(float64(events), "events")
	e.Stop()
	f.wg.Wait()
}
