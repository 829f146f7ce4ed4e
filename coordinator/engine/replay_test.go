package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// A replay makes every request again, calls no model and writes nothing, of a run that has ended as of one that goes on.
func TestReplay(t *testing.T) {
	p := program(t, mixedScript)
	other := program(t, strings.Replace(mixedScript, `"link " + i`, `"lynx " + i`, 1))
	throws := program(t, `await generate({ model: "small:8b", prompt: "p", schema: Answer }); throw new Error("no " + input.items.length);`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		r := newRig(t, f, Options{})
		id := r.submit(p, items(10))
		time.Sleep(2 * time.Second)
		open, err := r.e.Replay(t.Context(), id[:2])
		if err != nil || open.Divergence != nil || open.State != run.Running || open.Steps < 3 {
			t.Errorf("while it runs: %+v, %v", open, err)
		}
		v := r.wait(id)
		failed := r.wait(r.submit(throws, items(3)))
		calls, commits := len(f.sent()), r.store.commits.Load()
		got, err := r.e.Replay(t.Context(), id)
		if err != nil || got.Divergence != nil || got.Steps != len(v.Steps) || got.State != run.Completed {
			t.Errorf("%d of %d steps: %+v, %v", got.Steps, len(v.Steps), got, err)
		}
		if got, err := r.e.Replay(t.Context(), failed.ID); err != nil || got.Divergence != nil || got.State != run.Failed {
			t.Errorf("of a run that failed: %+v, %v", got, err)
		}
		if n := len(f.sent()) - calls; n > 0 || r.store.commits.Load() != commits {
			t.Errorf("replays made %d calls and %d commits", n, r.store.commits.Load()-commits)
		}
		r.e.Stop()
		r.opts.Host = swapped{script.NewHost(script.Limits{}), other}
		r.start()
		got, err = r.e.Replay(t.Context(), id)
		if d := got.Divergence; err != nil || d == nil || d.Pos != 2 || !strings.Contains(d.Expected, `"link 0 `) || !strings.Contains(d.Got, `"lynx 0 `) || got.Steps != 2 {
			t.Errorf("of another script: %+v, %v", got.Divergence, err)
		}
		if _, err := r.e.Replay(t.Context(), "zzzz"); apierr.CodeOf(err) != apierr.NotFound {
			t.Errorf("of no run: %v", err)
		}
	})
}

// Where two requests are long, people are shown the part in which they differ.
func TestADivergenceShowsWhatDiffers(t *testing.T) {
	long := strings.Repeat("x", 5000)
	r := &record{requests: []run.Request{{Pos: 0, Kind: "generate", Body: json.RawMessage(`{"prompt":"` + long + `one` + long + `"}`)}}}
	err := r.compare(script.Yield{Requests: []script.Request{{Pos: 0, Kind: "generate", Body: json.RawMessage(`{"prompt":"` + long + `two` + long + `"}`)}}}, &reaction{})
	var d *divergence
	if !errors.As(err, &d) || !strings.Contains(d.Expected, "xonex") || !strings.Contains(d.Got, "xtwox") || len(d.Error()) > 1000 {
		t.Errorf("%v", err)
	}
}

// TestALogLineIsWrittenOnce is row 16: lines that appear again whenever a script is replayed.
func TestALogLineIsWrittenOnce(t *testing.T) {
	p := flow(t, `for (let i = 0; i < 5; i++) { log("before " + i); await sleep(60); log("after " + i); }`)
	synctest.Test(t, func(t *testing.T) {
		c := newCensus()
		r := newRig(t, newFarm(1), Options{Host: c})
		id := r.submit(p, nil)
		for range 3 {
			time.Sleep(50 * time.Second) // it has given its host back
			r.e.Stop()
			r.start()
		}
		v := r.wait(id)
		lines := 0
		for _, ev := range r.events(id) {
			if _, ok := ev.Data.(*run.Logged); ok {
				lines++
			}
		}
		if _, _, started := c.now(); v.Status != run.Completed || lines != 10 || started < 6 {
			t.Errorf("%s with %d lines over %d hosts", v.Status, lines, started)
		}
	})
}

// TestARunKeepsTheScriptItBegan is rows 1 and 2: a run that an upgrade orphans, because it belongs to the code of the program that started
// it. The file is edited and the built-in workflow is another one when the coordinator comes back; what is under way goes on as it began.
func TestARunKeepsTheScriptItBegan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flow.ts")
	write := func(version string) script.Program {
		t.Helper()
		body := fmt.Sprintf(`import { approve, generate, spawn } from "loopkeeper";
export default async function flow() { const child = spawn({ workflow: "built-in", input: {} }); await approve({ title: %q }); return [%q, (await child).outputs.result]; }`, version, version)
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := script.Bundle(file)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	child := func(version string) script.Program {
		return flow(t, fmt.Sprintf(`await approve({ title: "child %s" }); return %q;`, version, version))
	}
	before, childBefore := write("one"), child("one")
	after, childAfter := write("two"), child("two")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{Workflows: library{"built-in": childBefore}.find})
		id := r.submit(before, nil)
		r.until("both wait", func() bool { return len(r.waits("")) == 2 })
		r.e.Stop()
		time.Sleep(24 * time.Hour)
		r.opts.Workflows = library{"built-in": childAfter}.find
		r.start()
		next := r.submit(after, nil)
		r.until("all wait", func() bool { return len(r.waits("")) == 4 })
		for _, w := range r.waits("") {
			if _, err := r.e.Settle(t.Context(), w.Run, w.Step, 0, Answer{Outcome: run.Approved}); err != nil {
				t.Fatal(err)
			}
		}
		for id, want := range map[string]string{id: `["one","one"]`, next: `["two","two"]`} {
			if v := r.wait(id); v.Status != run.Completed || r.output(id, "result") != want {
				t.Errorf("%s: %s, want %s (%s)", v.Status, r.output(id, "result"), want, v.Error)
			}
		}
	})
}

// A program that the first version of the library made goes on, and can be replayed.
func TestAScriptOfTheFirstInterfaceGoesOn(t *testing.T) {
	code, err := os.ReadFile("../script/testdata/interface1.js")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.nodes[0].Models = append(f.nodes[0].Models, model("m:latest"))
		f.answer = func(Attempt) Result { return Result{Text: "a text"} }
		f.takes = func(Attempt) time.Duration { return time.Minute }
		r := newRig(t, f, Options{})
		art, err := r.store.PutArtifact(t.Context(), "a.md", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		id := r.submit(script.Program{Name: "flow.ts", Code: code}, map[string]any{"files": []any{map[string]any{"bytes": 5, "name": "a.md", "ref": art.SHA256}}})
		for range 2 {
			time.Sleep(50 * time.Second)
			r.e.Stop()
			r.start()
		}
		v := r.wait(id)
		if v.Status != run.Completed || v.Calls != 2 {
			t.Fatalf("%s: %s %+v", v.Status, v.Error, v.Failures)
		}
		if got, err := r.e.Replay(t.Context(), id); err != nil || got.Divergence != nil || got.Steps < 5 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A program of a later loopkeeper is not broken: its run waits for one that knows its interface.
func TestAScriptOfALaterInterfaceWaits(t *testing.T) {
	p := flow(t, `await sleep(60); return 1;`)
	later := p
	later.Code = []byte(strings.Replace(string(p.Code), "version: 3", "version: 4", 1))
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		id := r.submit(p, nil)
		time.Sleep(time.Second)
		r.e.Stop()
		host := script.NewHost(script.Limits{})
		r.opts.Host = swapped{host, later}
		r.start()
		r.until("it is parked", func() bool { return r.view(id).Status == run.Suspended })
		if v := r.view(id); !strings.Contains(v.ParkedBy, "version 4") {
			t.Errorf("it is parked because of %q", v.ParkedBy)
		}
		r.e.Stop()
		r.opts.Host = host
		r.start()
		if _, err := r.e.ResumeRun(t.Context(), id, "ada"); err != nil {
			t.Fatal(err)
		}
		if v := r.wait(id); v.Status != run.Completed {
			t.Errorf("%s: %s", v.Status, v.Error)
		}
	})
}

// A text that no script can hold is not opened into memory.
func TestATextTooLargeForAScript(t *testing.T) {
	p := program(t, `return await read(input).catch((e: any) => e.kind + ": " + e.message);`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		art, err := r.store.PutArtifact(t.Context(), "big.txt", strings.NewReader(strings.Repeat("x", script.MaxValue+1)))
		if err != nil {
			t.Fatal(err)
		}
		id := r.submit(p, map[string]any{"ref": art.SHA256, "name": "big.txt", "bytes": art.Size})
		if v := r.wait(id); !v.Status.Ended() || !strings.Contains(r.output(id, "result"), "too_large: the result of step 0 has 16.0 MiB, and a script is given at most 16 MiB") {
			t.Errorf("%s: %s", v.Status, r.output(id, "result"))
		}
	})
}

// BenchmarkReplayRun is about rows 18 and 24 (limits of the length of a history, replays that cost O(N²)): a replay of a run of sequential
// steps, from the ledger to the last comparison.
func BenchmarkReplayRun(b *testing.B) {
	p := flow(b, `for (let i = 0; i < input.n; i++) await generate({ model: "small:8b", prompt: "p" + i, schema: Answer });`)
	for _, n := range []int{1000, 3000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			store, err := ledger.Open(b.Context(), ledger.Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			written(b, store, p, n)
			e := New(Options{Store: store, Host: script.NewHost(script.Limits{})})
			defer e.Stop()
			for b.Loop() {
				got, err := e.Replay(b.Context(), "run1")
				if err != nil || got.Divergence != nil || got.Steps != n {
					b.Fatal(got, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/step")
		})
	}
}

// written puts the events of a run of n steps in sequence into a ledger, as the engine would have written them.
func written(b *testing.B, store ledger.Store, p script.Program, n int) {
	b.Helper()
	art, err := store.PutArtifact(b.Context(), "script", strings.NewReader(string(p.Code)))
	if err != nil {
		b.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := &run.State{}
	var all []run.Event
	do := func(cmd run.Command) {
		now = now.Add(time.Millisecond)
		events, err := run.Execute(s, cmd, now)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, events...)
	}
	do(run.Create{Created: run.Created{ID: "run1", Workflow: "flow", Script: art.SHA256, Program: p.Name, Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), Seed: 1, Clock: now}})
	do(run.Start{})
	session, y, err := script.NewHost(script.Limits{}).Start(b.Context(), script.Start{Program: p, Input: s.Pinned.Input, Seed: 1, Clock: s.Pinned.Clock})
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	for y.End == nil {
		r := y.Requests[0]
		do(run.Yield{Requests: []run.Request{{Pos: r.Pos, Kind: r.Kind, Body: r.Body}}})
		id := run.AttemptID{Pos: r.Pos, Phase: run.Work, Number: 1}
		do(run.Place{AttemptID: id, Node: "n1", Model: "small:8b", Digest: "sha", Context: 4096, Why: "box-1 is free and has the model in memory"})
		do(run.Begin{AttemptID: id})
		do(run.Finish{AttemptID: id, Evidence: run.Evidence{Node: "n1", Prompt: art.SHA256, Raw: art.SHA256, Report: run.Report{Model: "small:8b", PromptTokens: 20, OutputTokens: 10}},
			Result: run.Content{Value: json.RawMessage(`{"of":"the answer"}`)}})
		d := settled(s, s.Deliveries[len(s.Deliveries)-1])
		if y, err = session.Deliver(b.Context(), script.Delivery{Pos: d.at.Pos, Time: d.at.Time, Value: d.what.Value}); err != nil {
			b.Fatal(err)
		}
	}
	do(run.Yield{End: &run.ScriptEnd{}})
	for len(all) > 0 {
		var c ledger.Commit
		some := all[:min(len(all), 5000)]
		for _, ev := range some {
			kind, payload, err := run.Encode(ev)
			if err != nil {
				b.Fatal(err)
			}
			c.Events = append(c.Events, ledger.Event{RunID: "run1", Seq: ev.Seq, Time: ev.Time, Kind: kind, Payload: payload})
		}
		c.Runs = []ledger.RunRow{{ID: "run1", Workflow: "flow", State: string(s.Status), Created: s.Born, Summary: json.RawMessage("{}")}}
		if err := store.Append(b.Context(), c); err != nil {
			b.Fatal(err)
		}
		all = all[len(some):]
	}
}
