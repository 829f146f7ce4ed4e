package run

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
)

// held is how many bytes of heap a value keeps, beside what was there before.
func held(make func() *State) (uint64, *State) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := make()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return after.HeapAlloc - before.HeapAlloc, s
}

// A hundred thousand items in one run cost well under 100 MB, see the issue of the loop: coordinator memory stays under 250 MB.
func TestALargeBatchIsSmallInMemory(t *testing.T) {
	const n = 20_000
	bytes, s := held(func() *State { s, _ := large(discard{t}, n); return s })
	if per := bytes / n; per > 500 {
		t.Errorf("an item takes %d bytes, a hundred thousand %d MB", per, per*100_000>>20)
	}
	runtime.KeepAlive(s)
}

// discard keeps no results.
type discard struct{ testing.TB }

func BenchmarkItemBytes(b *testing.B) {
	const n = 100_000
	bytes, s := held(func() *State { s, _ := large(discard{b}, n); return s })
	b.ReportMetric(float64(bytes)/n, "B/item")
	b.ReportMetric(float64(bytes)/(1<<20), "MB")
	runtime.KeepAlive(s)
}

// sequence are the events of a run with n steps, one after the other.
func sequence(t testing.TB, n int) []Event {
	s, now := &State{}, birth
	var all []Event
	do := func(cmd Command) {
		events, err := Execute(s, cmd, now)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, events...)
	}
	do(Create{Created{ID: "k3f9", Script: "abc"}})
	do(Start{})
	for i := range n {
		do(Yield{Requests: []Request{{Pos: i, Kind: KindGenerate, Body: json.RawMessage(fmt.Sprintf(`{"model":"m","prompt":"step %d","schema":{}}`, i))}}})
		id := AttemptID{Pos: i, Phase: Work, Number: 1}
		if tickets, _ := s.Ready(now, 4); len(tickets) != 1 || tickets[0].AttemptID != id {
			t.Fatalf("ready are %+v", tickets)
		}
		do(Place{AttemptID: id, Node: "n1", Model: "m"})
		do(Finish{AttemptID: id, Result: Content{Value: json.RawMessage(`{"x":1}`)}})
	}
	return all
}

// A long run keeps little of a step that has ended.
func TestALongRunIsSmallInMemory(t *testing.T) {
	const n = 2_000
	events := sequence(t, n)
	bytes, s := held(func() *State { return refold(t, events) })
	if per := bytes / n; per > 3000 {
		t.Errorf("a step takes %d bytes, ten thousand %d MB", per, per*10_000>>20)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(events)
}

// BenchmarkJudgedBatch lets the judge lag behind the work by the whole batch: what waits must not be looked at again each time.
func BenchmarkJudgedBatch(b *testing.B) {
	for _, n := range []int{2_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				judged(b, n)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/item")
		})
	}
}

func judged(t testing.TB, n int) {
	s, now := &State{}, birth
	do := func(cmd Command) {
		if _, err := Execute(s, cmd, now); err != nil {
			t.Fatal(err)
		}
	}
	do(Create{Created{ID: "k3f9", Script: "abc"}})
	do(Start{})
	do(Yield{Requests: []Request{{Kind: KindBatch, Lines: &Lines{Count: n, Index: "ee"},
		Body: json.RawMessage(`{"evaluate":{"criteria":["good"],"model":"judge"},"items":{"lines":{"bytes":40,"name":"d","ref":"dd"}},"model":"small","prompt":"{{item}}"}`)}}})
	for _, phase := range []Phase{Work, Judge} {
		for range n {
			tickets, _ := s.Ready(now, 8)
			at := tickets[0].AttemptID
			for _, tk := range tickets {
				if tk.Phase == phase {
					at = tk.AttemptID
					break
				}
			}
			do(Place{AttemptID: at, Node: "n1", Model: "m"})
			do(Finish{AttemptID: at, Result: Content{Value: json.RawMessage(met("good"))}})
		}
	}
	if s.Counts.Succeeded != n {
		t.Fatalf("%+v", s.Counts)
	}
}

// BenchmarkReplay folds recorded events of runs of 1k, 3k and 10k steps: the time per step must not grow.
func BenchmarkReplay(b *testing.B) {
	for _, n := range []int{1_000, 3_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			type row struct {
				kind    string
				payload json.RawMessage
			}
			var rows []row
			for _, e := range sequence(b, n) {
				kind, payload, err := Encode(e)
				if err != nil {
					b.Fatal(err)
				}
				rows = append(rows, row{kind, payload})
			}
			for b.Loop() {
				s := &State{}
				for i, r := range rows {
					e, err := Decode(int64(i+1), birth, r.kind, r.payload)
					if err != nil || Apply(s, e) != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/step")
		})
	}
}
