package durable

import (
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// inARow is steps one after the other, each of which knows the last one's answer.
const inARow = `let last = ""; for (let i = 0; i < input.n; i++) last = (await generate({ model: "small:8b", prompt: "p" + i, item: last, schema: Answer })).of; return input.n;`

// large is a batch over the lines of a text.
const large = `const made = await batch({ items: lines(input), model: "small:8b", prompt: "{{item}}", schema: Answer }); return [made.total, made.succeeded, made.coverage];`

// liveHeap is how much of the heap of this process was live at the last collection, bytes.
func liveHeap() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// watchHeap looks at the live heap until its result is called, which is the most that it saw.
func watchHeap() (most func() int64) {
	runtime.GC()
	peak, done := liveHeap(), make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				peak = max(peak, liveHeap())
			case <-done:
				return
			}
		}
	})
	return func() int64 {
		runtime.GC()
		close(done)
		looking.Wait()
		return max(peak, liveHeap())
	}
}

// items is so many lines of JSON.
func items(n int) io.Reader {
	r, w := io.Pipe()
	go func() {
		for i := range n {
			if _, err := fmt.Fprintf(w, `{"key":"document-%06d","text":"some words that stand for a line"}`+"\n", i); err != nil {
				return // nobody reads any more
			}
		}
		_ = w.Close() // never fails
	}()
	return r
}

// put stores a text and returns it as an input.
func put(t testing.TB, client coordinatorv1.CoordinatorServiceClient, name string, body io.Reader) map[string]any {
	t.Helper()
	stream, err := client.PutArtifact(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for first, chunk := true, make([]byte, 64<<10); ; first = false {
		n, readErr := io.ReadFull(body, chunk)
		msg := &coordinatorv1.PutArtifactRequest{Chunk: chunk[:n]}
		if first {
			msg.Name = name
		}
		if err := stream.Send(msg); err != nil {
			t.Fatal(err)
		}
		if readErr != nil {
			break
		}
	}
	r, err := stream.CloseAndRecv()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"ref": r.GetRef().GetSha256(), "name": name, "bytes": r.GetRef().GetBytes()}
}

// finish runs a script on the whole coordinator and wants it to be completed with all of its items.
func (h *house) finish(body string, input any, n int64) (id string, took time.Duration) {
	h.t.Helper()
	p := program(h.t, body)
	began := time.Now()
	id, err := h.submit(p, "", input)
	if err != nil {
		h.t.Fatal(err)
	}
	r, err := h.end(id)
	if err != nil || r.GetState() != "completed" || r.GetItems().GetSucceeded() != n {
		h.t.Fatalf("%s %s, %v, %v", r.GetState(), r.GetError(), r.GetItems(), err)
	}
	return id, time.Since(began)
}

// bigHouse is a coordinator over a real ledger with machines for a large batch.
func bigHouse(t testing.TB) *house {
	t.Helper()
	h := newHouse(t, 4, 64)
	if err := h.start(ledgerOn(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stop)
	return h
}

// What a run needs in memory grows with its steps and items, and by so little that 10,000 steps and 100,000 items stay within 250 MB of
// live heap. A tenth of both is run here, and may take a tenth; make bench-durability runs them whole.
func TestLongRunsStayWithinTheirMemory(t *testing.T) {
	const tenth = 250e6 / 10
	h := bigHouse(t)
	h.finish(inARow, map[string]any{"n": 10}, 10) // what is made once is there
	runtime.GC()
	before, most := liveHeap(), watchHeap()
	h.finish(inARow, map[string]any{"n": 1000}, 1000)
	h.finish(large, put(t, h.client, "data.jsonl", items(10_000)), 10_000)
	if grew := most() - before; grew > tenth {
		t.Errorf("the live heap grew by %d bytes", grew)
	} else {
		t.Logf("the live heap grew by %d bytes at most", grew)
	}
}
