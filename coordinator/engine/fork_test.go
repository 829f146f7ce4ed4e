package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// TestARetryDoesOnlyWhatFailed takes over values, texts, answers and what tools did.
func TestARetryDoesOnlyWhatFailed(t *testing.T) {
	p := flow(t, `
  const r = await batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer, retry: { attempts: 1 } });
  const note = await generate({ model: "small:8b", prompt: "a text" });
  const said = await approve({ title: "go on?" });
  await tool("mail", { text: "letter" });
  await sleep(3600);
  return [r.failed, note.ref, said.by, Math.random(), uuid()];`)
	synctest.Test(t, func(t *testing.T) {
		bad := true
		f := newFarm(2)
		f.answer = func(a Attempt) Result {
			if bad && a.Step == 0 && a.Item%5 == 0 {
				return Result{Failure: &Failure{Kind: "schema_violation", Message: "no", Advice: run.Again}}
			}
			if a.Step == 1 {
				return Result{Text: "a long text"}
			}
			return value(a)
		}
		b := newBench()
		r := newRig(t, f, Options{Tools: b})
		id := r.submit(p, items(1005)) // more than a delivery has
		r.until("it is asked", func() bool { return len(r.waits(id)) == 1 })
		if _, _, err := r.e.Fork(t.Context(), ForkRequest{Run: id, Failed: true}); apierr.CodeOf(err) != apierr.Conflict {
			t.Errorf("a retry of a run that goes on: %v", err)
		}
		if _, err := r.e.Settle(t.Context(), id, r.waits(id)[0].Step, 0, Answer{Outcome: run.Approved, By: "ada"}); err != nil {
			t.Fatal(err)
		}
		if v := r.wait(id); v.Status != run.Incomplete || v.Items.Failed != 201 {
			t.Fatalf("%s, %+v: %s", v.Status, v.Items, v.Error)
		}
		bad = false
		sent := len(f.sent())
		again, _, err := r.e.Fork(t.Context(), ForkRequest{Run: id[:3], Failed: true, Key: "again"})
		if err != nil {
			t.Fatal(err)
		}
		if same, existing, err := r.e.Fork(t.Context(), ForkRequest{Run: id, Failed: true, Key: "again"}); same != again || !existing || err != nil {
			t.Errorf("the same key gave %s, %v, %v", same, existing, err)
		}
		time.Sleep(2 * time.Second)
		r.e.Stop() // in the middle of it
		r.start()
		v := r.wait(again)
		if v.Status != run.Completed || v.Base != id || v.Calls != 201 || v.Items.Reused != 806 || v.Ended.Sub(v.Created) > 30*time.Minute {
			t.Fatalf("%s of %s after %d calls, %+v", v.Status, v.Base, v.Calls, v.Items)
		}
		for _, a := range f.sent()[sent:] {
			if a.Item%5 != 0 || a.Step != 0 {
				t.Fatalf("%s was called again", a.Key)
			}
		}
		if n := b.did()["letter"]; n != 1 {
			t.Errorf("the letter was sent %d times", n)
		}
		cut := func(s string) string { return s[strings.Index(s, ","):] }
		if old, new := r.output(id, "result"), r.output(again, "result"); cut(old) != cut(new) || !strings.HasPrefix(new, "[0,") {
			t.Errorf("%s became %s", old, new)
		}
		page, err := r.e.Items(t.Context(), again, 0, 1, 2)
		if err != nil || string(page.Items[0].Value) != `{"of":"\"item 001\""}` || page.Items[0].Attempts != 0 {
			t.Errorf("items of a large batch: %+v, %v", page, err)
		}
	})
}

// TestARetryOfASpawn starts a child again that did not complete, and no other.
func TestARetryOfASpawn(t *testing.T) {
	child := flow(t, `if ((await generate({ model: "small:8b", prompt: input.name, schema: Answer })).of.includes("bad")) throw new Error("no"); return input.name;`)
	p := flow(t, `const r = []; for (const name of ["one", "two"]) r.push(await spawn({ workflow: "child", input: { name } })); return r.map((c: any) => c.state);`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		bad := true
		f.answer = func(a Attempt) Result {
			if bad && strings.Contains(string(a.Request), "two") {
				return Result{Value: json.RawMessage(`{"of":"bad"}`)}
			}
			return Result{Value: json.RawMessage(`{"of":"good"}`)}
		}
		r := newRig(t, f, Options{Workflows: library{"child": child}.find})
		id := r.submit(p, nil)
		old := r.wait(id)
		bad = false
		again, _, err := r.e.Fork(t.Context(), ForkRequest{Run: id, Failed: true})
		if err != nil {
			t.Fatal(err)
		}
		v := r.wait(again)
		if old.Status != run.Incomplete || v.Status != run.Completed || r.output(again, "result") != `["completed","completed"]` || len(v.Children) != 1 || v.Children[0] == old.Children[1] {
			t.Errorf("%s became %s: %s, children %v and %v", old.Status, v.Status, r.output(again, "result"), old.Children, v.Children)
		}
	})
}

// TestAForkFromAStep shares what came before, and asks another model for the rest.
func TestAForkFromAStep(t *testing.T) {
	p := flow(t, `
  const a = await generate({ model: "small:8b", prompt: "one", schema: Answer });
  const b = await generate({ model: "small:8b", prompt: "two", schema: Answer });
  return [a, b, input.extra ?? "none"];`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		r := newRig(t, f, Options{})
		id := r.submit(p, map[string]any{})
		r.wait(id)
		sent := len(f.sent())
		forked, _, err := r.e.Fork(t.Context(), ForkRequest{Run: id, Before: 1, Input: json.RawMessage(`{"extra":"some"}`), Models: map[string]string{"small:8b": "judge:8b"}})
		if err != nil {
			t.Fatal(err)
		}
		r.e.Stop()
		r.start()
		v := r.wait(forked)
		calls := f.sent()[sent:]
		if v.Status != run.Completed || len(calls) != 1 || calls[0].Model != "judge:8b" || calls[0].Step != 1 {
			t.Errorf("%s; it called %+v", v.Status, calls)
		}
		if got := r.output(forked, "result"); !strings.Contains(got, "some") {
			t.Errorf("the result is %s", got)
		}
		for _, bad := range []ForkRequest{{Run: id, Before: 99}, {Run: id, Failed: true}, {Run: "zzzz"}} {
			if _, _, err := r.e.Fork(t.Context(), bad); apierr.CodeOf(err) != apierr.NotFound && apierr.CodeOf(err) != apierr.InvalidArgument {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	})
}

// TestNothingIsWrittenAgainForABaseThatCannotBeRead: what the base did is unknown then, so its steps fail, and a child is not begun.
func TestNothingIsWrittenAgainForABaseThatCannotBeRead(t *testing.T) {
	child := flow(t, `await tool("mail", { text: "of the child" });`)
	p := flow(t, `
  const kind = (done: any) => done.then(() => "done", (e: any) => e.kind);
  return [await kind(tool("mail", { text: "letter" })), await kind(spawn({ workflow: "child", input: {} }))];`)
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		r := newRig(t, newFarm(1), Options{Tools: b, Workflows: library{"child": child}.find})
		id := r.submit(p, nil)
		r.wait(id)
		r.e.Stop()
		r.start() // which has read nothing of it yet
		r.store.unreadable.Store(id)
		again, _, err := r.e.Submit(t.Context(), Submission{Workflow: "flow", Program: p, Input: json.RawMessage(`null`), Base: &run.Base{Run: id}})
		if err != nil {
			t.Fatal(err)
		}
		v := r.wait(again)
		if got := r.output(again, "result"); v.Status == run.Completed || got != `["base_unreadable","base_unreadable"]` || len(v.Children) != 0 {
			t.Errorf("%s: %s, children %v", v.Status, got, v.Children)
		}
		if did := b.did(); did["letter"] != 1 || did["of the child"] != 1 {
			t.Errorf("it wrote %v", did)
		}
		if _, _, err := r.e.Fork(t.Context(), ForkRequest{Run: id}); err == nil {
			t.Error("a run that cannot be read was forked")
		}
	})
}

// TestAForkOfWhatWasPrunedIsRefused: it says from where on to do things anew.
func TestAForkOfWhatWasPrunedIsRefused(t *testing.T) {
	p := flow(t, `const a = await generate({ model: "small:8b", prompt: "one", schema: Answer }); const b = await generate({ model: "small:8b", prompt: "two" }); return [a, b.facts.model];`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.answer = func(a Attempt) Result {
			if a.Step == 1 {
				return Result{Text: strings.Repeat("a long text", 10_000)}
			}
			return value(a)
		}
		r := newRig(t, f, Options{})
		id := r.submit(p, nil)
		r.wait(id)
		time.Sleep(time.Hour)
		report, err := r.store.Prune(t.Context(), ledger.PrunePolicy{Before: time.Now(), Keys: []string{ledger.KeyResult}})
		if err != nil || report.Total.Bodies != 1 {
			t.Fatalf("%+v, %v", report, err)
		}
		_, _, err = r.e.Fork(t.Context(), ForkRequest{Run: id})
		if ae := apierr.As(err); ae == nil || ae.Code != apierr.NotFound || len(ae.Next) == 0 || !strings.Contains(ae.Next[0], "loopkeeper fork "+id+" --from 1") {
			t.Errorf("a fork of what was pruned: %v", err)
		}
		again, _, err := r.e.Fork(t.Context(), ForkRequest{Run: id, Before: 1})
		if err != nil {
			t.Fatal(err)
		}
		if v := r.wait(again); v.Status != run.Completed || v.Calls != 1 {
			t.Errorf("%s after %d calls", v.Status, v.Calls)
		}
	})
}

// TestReusePaysOnlyForWhatChanged is a nightly batch.
func TestReusePaysOnlyForWhatChanged(t *testing.T) {
	p := flow(t, `
  const r = await batch({ items: input.items, keys: input.keys, label: input.label, model: "small:8b", prompt: input.prompt, schema: Answer, reuse: input.reuse,
    evaluate: input.judge ? { criteria: ["good"], model: "judge:8b" } : undefined });
  const note = await generate({ model: "small:8b", prompt: input.prompt, item: "note", reuse: input.reuse });
  return [r.succeeded, note.facts.model, note.ref];`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.answer = func(a Attempt) Result {
			if a.Step == 1 && a.Kind == CallGenerate {
				return Result{Text: "text", Report: Report{Model: a.Model}}
			}
			return value(a)
		}
		r := newRig(t, f, Options{})
		night := func(n int, change map[string]any) (View, int) {
			in := map[string]any{"prompt": "do {{item}}", "reuse": true, "label": fmt.Sprint("night ", n)}
			var list, keys []string
			for i := range 30 {
				list, keys = append(list, fmt.Sprint("file ", i)), append(keys, fmt.Sprint(n, "/", i))
			}
			in["items"], in["keys"] = list, keys
			for k, v := range change {
				in[k] = v
			}
			if c, ok := change["changed"].(int); ok {
				list[c] = "another text"
			}
			sent := len(f.sent())
			v := r.wait(r.submit(p, in))
			if v.Status != run.Completed {
				t.Fatalf("night %d: %+v", n, v)
			}
			return v, len(f.sent()) - sent
		}
		first, n := night(1, map[string]any{"reuse": false})
		if n != 31 {
			t.Fatalf("the first night makes %d calls", n)
		}
		second, n := night(2, map[string]any{"changed": 7})
		if n != 1 || second.Items.Reused != 30 || r.output(second.ID, "result") != r.output(first.ID, "result") {
			t.Errorf("the second night makes %d calls, takes %d over; %s, %s", n, second.Items.Reused, r.output(second.ID, "result"), r.output(first.ID, "result"))
		}
		if _, n = night(3, map[string]any{"prompt": "do well {{item}}"}); n != 31 {
			t.Errorf("another prompt makes %d calls", n)
		}
		if _, n = night(10, map[string]any{"judge": true}); n != 60 { // the text is the same request still
			t.Errorf("a judged batch makes %d calls", n)
		}
		if _, n = night(11, map[string]any{"judge": true}); n != 0 {
			t.Errorf("what was judged before makes %d calls", n)
		}
		if _, n = night(4, map[string]any{"reuse": false}); n != 31 {
			t.Errorf("a night that does not ask for it makes %d calls", n)
		}
		for _, m := range f.nodes { // another model under the same name
			f.mu.Lock()
			m.Models = slices.Clone(m.Models) // the engine still reads the old ones
			for i := range m.Models {
				m.Models[i].Digest += "-new"
			}
			f.mu.Unlock()
			f.lose(m.ID)
			f.back(m.ID)
		}
		if _, n = night(5, nil); n != 31 {
			t.Errorf("another model of the same name makes %d calls", n)
		}
	})
}

// TestReuseOverLines: a file of lines that changes in one line costs one call.
func TestReuseOverLines(t *testing.T) {
	p := flow(t, `return (await batch({ items: { lines: input } as any, model: "small:8b", prompt: "{{item}}", schema: Answer, reuse: true })).succeeded;`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.answer = ofLine
		r := newRig(t, f, Options{})
		night := func(change int) int {
			var text strings.Builder
			for i := range 40 {
				if i == change {
					text.WriteString(`"another line, and longer"` + "\n")
				}
				fmt.Fprintf(&text, "{\"n\":%d}\n", i)
			}
			sent := len(f.sent())
			if v := r.wait(r.submit(p, r.lines(text.String()))); v.Status != run.Completed {
				t.Fatalf("%+v", v)
			}
			return len(f.sent()) - sent
		}
		if first, second, third := night(-1), night(-1), night(20); first != 40 || second != 0 || third != 1 {
			t.Errorf("the nights make %d, %d and %d calls", first, second, third)
		}
	})
}
