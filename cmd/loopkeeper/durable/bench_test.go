//go:build unix

package durable

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

const judged = `const items = []; for (let i = 0; i < input.n; i++) items.push("item " + i);
  return (await batch({ items, model: "small:8b", prompt: "{{item}}", schema: Answer, evaluate: { criteria: ["it is good"], model: "judge:8b" } })).succeeded;`

// commits is how many commits of one event each, of the size of a step's, the disk makes a second now.
func commits(b *testing.B, s ledger.Store) float64 {
	b.Helper()
	const n = 300
	row := ledger.RunRow{ID: "floor", Workflow: "floor", State: string(run.Completed), Created: time.Now(), Summary: json.RawMessage(`{}`)}
	payload, err := json.Marshal(map[string]any{"pos": 0, "body": map[string]string{"text": strings.Repeat("of the size of a step's event ", 20)}})
	if err != nil {
		b.Fatal(err)
	}
	head, err := s.Head(b.Context(), row.ID)
	if err != nil {
		head.Seq = 0 // there is none yet
	}
	began := time.Now()
	for i := range int64(n) {
		c := ledger.Commit{Runs: []ledger.RunRow{row}, Events: []ledger.Event{{RunID: row.ID, Seq: head.Seq + 1 + i, Time: time.Now(), Kind: "run.logged", Payload: payload}}}
		if err := s.Append(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	return n / time.Since(began).Seconds()
}

// processor is how much time of a processor this process has used.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// rate measures the engine alone and the disk in turns, over one ledger.
func rate(b *testing.B, name, body string, n int, promise float64) {
	p, store, f := program(b, body), ledgerOn(b), &instant{}
	e := startEngine(b, store, f)
	defer func() { e.Stop(); f.pending.Wait() }()
	complete(b, e, p, 100)
	var rates, ratios, work series
	for b.Loop() {
		before, began := commits(b, store), processor(b)
		r := float64(n) / complete(b, e, p, n).Seconds()
		work = append(work, float64(processor(b)-began)/1e6/float64(n))
		rates = append(rates, r)
		ratios = append(ratios, r/((before+commits(b, store))/2))
	}
	b.ReportMetric(rates.median(), "items/s")
	b.ReportMetric(ratios.median(), "of-disk")
	note(name+", a second", rates.show("%.0f"), "")
	note(name+", time of a processor each", work.show("%.2f")+" ms", "")
	note(name+", ÷ single durable commits of the disk", ratios.show("%.2f"), fmt.Sprintf("≥ %.1f", promise))
}

func BenchmarkSequentialSteps(b *testing.B) {
	rate(b, "sequential durable steps, engine alone", inARow, 1000, 0.6)
}

func BenchmarkFanOut(b *testing.B) {
	rate(b, "items of a batch with a result and a verdict each, engine alone", judged, 3000, 2)
}

// BenchmarkLong runs 10,000 steps and replays them, on the whole coordinator with workers at the other end of gRPC.
func BenchmarkLong(b *testing.B) {
	for _, n := range []int{1000, 3000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			h := bigHouse(b)
			record := coordinatorv1.NewRecordServiceClient(h.conn)
			most := watchHeap()
			id, took := h.finish(inARow, map[string]any{"n": n}, int64(n))
			peak := most()
			var replays, work series
			for b.Loop() {
				began := processor(b)
				r, err := record.ReplayRun(b.Context(), &coordinatorv1.ReplayRunRequest{RunId: id})
				if err != nil || r.GetDiverged() != "" || int(r.GetSteps()) < n {
					b.Fatal(r, err)
				}
				replays, work = append(replays, float64(r.GetNanos())/1e6), append(work, float64(processor(b)-began)/1e6)
			}
			b.ReportMetric(replays.median(), "ms/replay")
			promise := ""
			if n == 10_000 {
				promise = "< 500 ms"
				note("10,000 sequential steps, whole coordinator", fmt.Sprintf("%.1f s", took.Seconds()), "end")
				note("live heap of the 10,000 steps, with the test's workers", fmt.Sprintf("%.0f MB", float64(peak)/1e6), "< 250 MB")
			}
			note(fmt.Sprintf("replay of %d steps", n), replays.show("%.0f")+" ms", promise)
			note(fmt.Sprintf("replay of %d steps, time of a processor", n), work.show("%.0f")+" ms", "")
		})
	}
}

// BenchmarkLargeBatch is 100,000 lines on the whole coordinator.
func BenchmarkLargeBatch(b *testing.B) {
	h := bigHouse(b)
	input := put(b, h.client, "data.jsonl", items(100_000))
	once := sync.OnceFunc(func() { // rounds would tell nothing more
		most := watchHeap()
		_, took := h.finish(large, input, 100_000)
		peak := float64(most()) / 1e6
		b.ReportMetric(peak, "MB")
		note("batch of 100,000 lines, whole coordinator", fmt.Sprintf("%.1f s", took.Seconds()), "end")
		note("live heap of the 100,000 lines, with the test's workers", fmt.Sprintf("%.0f MB", peak), "< 250 MB")
	})
	for b.Loop() {
		once()
	}
}

// BenchmarkProgram is the program itself: what it takes of memory for the long runs, as the system sees it.
func BenchmarkProgram(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("left out: only Linux says how much memory a process took at most")
	}
	h := newHome(b, &machine{id: "n1", slots: 64})
	h.start(build(b, top(b)))
	client := h.client()
	once := sync.OnceFunc(func() {
		c := &house{t: b, client: client}
		c.finish(inARow, map[string]any{"n": 10_000}, 10_000)
		c.finish(large, put(b, client, "data.jsonl", items(100_000)), 100_000)
		status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(h.cmd.Process.Pid), "status"))
		if err != nil {
			b.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(kib*1024/1e6, "MB")
		note("resident memory of the program after both, at most", fmt.Sprintf("%.0f MB", kib*1024/1e6), "< 250 MB")
	})
	for b.Loop() {
		once()
	}
}

// thousandEvents makes a run of 1,000 events, and then a call each time that its timer has gone by.
const thousandEvents = `for (let i = 0; i < 245; i++) await generate({ model: "small:8b", prompt: "p" + i, schema: Answer });
  for (;;) { await sleep(2); await generate({ model: "small:8b", prompt: "next", schema: Answer }); }`

// parked waits until a run waits for its timer, and returns when that will have gone by for sure.
func parked(state func() (string, error)) time.Time {
	for {
		if is, err := state(); err == nil && is == string(run.Waiting) {
			return time.Now().Add(2100 * time.Millisecond)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// drain forgets the calls that were made before.
func drain(calls <-chan time.Time) {
	for len(calls) > 0 {
		<-calls
	}
}

// BenchmarkAfterAKill kills the program while its run waits for a timer, and measures from the start of its next process to the arrival
// of the next call at a worker; the timer has gone by when it starts.
func BenchmarkAfterAKill(b *testing.B) {
	reached := make(chan time.Time, 1000)
	h := newHome(b, &machine{id: "n1", slots: 1, reached: func(string) { reached <- time.Now() }})
	binary := build(b, top(b))
	h.start(binary)
	people := &house{t: b, client: h.client()}
	id := people.must(people.submit(program(b, thousandEvents), "", nil))
	for range 246 {
		<-reached
	}
	var took series
	for b.Loop() {
		due := parked(func() (string, error) {
			r, err := h.client().GetRun(b.Context(), &coordinatorv1.GetRunRequest{RunId: id})
			return r.GetRun().GetState(), err
		})
		h.kill()
		drain(reached)
		time.Sleep(time.Until(due))
		began := time.Now()
		ready := h.exec(binary)
		took = append(took, float64((<-reached).Sub(began))/1e6)
		<-ready
	}
	b.ReportMetric(took.median(), "ms")
	note("from exec to the next call at a worker, after kill -9", took.show("%.0f")+" ms", "≤ 250 ms")
}

// BenchmarkEngineAfterAStop is the engine's part of it: from Start to the next call handed to dispatch.
func BenchmarkEngineAfterAStop(b *testing.B) {
	store, sent := ledgerOn(b), make(chan time.Time, 1000)
	f := &instant{sent: func() { sent <- time.Now() }}
	e := startEngine(b, store, f)
	id, _, err := e.Submit(b.Context(), engine.Submission{Workflow: "flow", Program: program(b, thousandEvents), Input: json.RawMessage(`{}`)})
	if err != nil {
		b.Fatal(err)
	}
	for range 246 {
		<-sent
	}
	var took series
	for b.Loop() {
		due := parked(func() (string, error) {
			v, err := e.Run(b.Context(), id)
			return string(v.Status), err
		})
		e.Stop()
		f.pending.Wait()
		drain(sent)
		time.Sleep(time.Until(due))
		f = &instant{sent: f.sent}
		began := time.Now()
		e = startEngine(b, store, f)
		took = append(took, float64((<-sent).Sub(began))/1e6)
	}
	e.Stop()
	f.pending.Wait()
	b.ReportMetric(took.median(), "ms")
	note("from the engine's start to the next call, engine alone", took.show("%.0f")+" ms", "≤ 50 ms")
}
