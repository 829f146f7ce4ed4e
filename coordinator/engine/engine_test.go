package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

const batchScript = `
  const r = await batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer, retry: { attempts: input.attempts ?? 3 } });
  output("values", r.values);
  return { total: r.total, failed: r.failures.map((f: any) => f.key) };`

func TestABatchOverTwoNodes(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(2), Options{})
		id := r.submit(p, items(40))
		v := r.wait(id)
		if v.Status != run.Completed || v.Items.Succeeded != 40 || v.Coverage != 1 || !v.Simulated || v.Calls != 40 {
			t.Fatalf("%+v", v)
		}
		for _, n := range v.Nodes {
			if n.Items < 10 {
				t.Errorf("%s did %d of 40 items", n.Name, n.Items)
			}
		}
		if got := r.output(id, "result"); got != `{"failed":[],"total":40}` {
			t.Errorf("the result is %s", got)
		}
		page, err := r.e.Items(t.Context(), id[:3], -1, 38, 10)
		if err != nil || page.Total != 40 || page.FinalPrefix != 40 || len(page.Items) != 2 || string(page.Items[1].Value) != `{"of":"\"item 039\""}` {
			t.Errorf("the last page is %+v, %v", page, err)
		}
		r.once(id)
	})
}

// TestFaults is the mix of faults on 200 items: with attempts enough the run completes, else the list is exact.
func TestFaults(t *testing.T) {
	p := program(t, batchScript)
	for _, attempts := range []int{12, 2} {
		t.Run(fmt.Sprint(attempts, " attempts"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFarm(2)
				f.answer = faulty
				r := newRig(t, f, Options{})
				input := items(200)
				input["attempts"] = attempts
				id := r.submit(p, input)
				v := r.wait(id)
				var want []string // the items whose every attempt fails
				for i := range 200 {
					lost := true
					for n := 1; n <= attempts && lost; n++ {
						lost = faulty(Attempt{Item: i, Number: n}).Failure != nil
					}
					if lost {
						want = append(want, fmt.Sprint(i))
					}
				}
				status := run.Completed
				if len(want) > 0 {
					status = run.Incomplete
				}
				var got []string
				for _, g := range v.Failures {
					got = append(got, g.Items...)
				}
				slices.Sort(got)
				slices.Sort(want)
				if v.Status != status || !slices.Equal(got, want) || v.Items.Failed != len(want) || v.Items.Succeeded != 200-len(want) {
					t.Errorf("%s with %+v, failed %q, want %s, %q", v.Status, v.Items, got, status, want)
				}
				if attempts == 2 && len(want) < 10 {
					t.Errorf("only %d items fail for good: the test tests little", len(want))
				}
				r.once(id)
			})
		})
	}
}

func TestCancelLeavesNothingRunning(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.takes = func(Attempt) time.Duration { return time.Hour }
		r := newRig(t, f, Options{})
		id := r.submit(p, items(20))
		time.Sleep(time.Minute)
		if len(f.running()) == 0 || r.e.Busy("n1") == 0 {
			t.Fatal("nothing runs after a minute")
		}
		v, err := r.e.Cancel(t.Context(), id, "enough")
		if err != nil || v.Status != run.Cancelled || v.Items.Cancelled != 20 || len(v.InFlight) != 0 {
			t.Fatalf("%+v, %v", v, err)
		}
		synctest.Wait()
		if left := f.running(); len(left) > 0 || r.e.Busy("n1")+r.e.Busy("n2") > 0 {
			t.Errorf("still running: %q", left)
		}
		sent := len(f.sent())
		time.Sleep(time.Hour)
		if more := len(f.sent()) - sent; more > 0 {
			t.Errorf("%d attempts were sent after the cancel", more)
		}
		if _, err := r.e.Cancel(t.Context(), id, ""); apierr.CodeOf(err) != apierr.Conflict {
			t.Errorf("cancelled twice: %v", err)
		}
		if v := r.wait(id); v.Status != run.Cancelled {
			t.Errorf("it is %s", v.Status)
		}
	})
}

func TestWhatComesAfterACancelIsEvidence(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.deaf, f.takes = true, func(Attempt) time.Duration { return 5 * time.Minute }
		r := newRig(t, f, Options{})
		id := r.submit(p, items(4))
		time.Sleep(time.Minute)
		if _, err := r.e.Cancel(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		late := 0
		for _, ev := range r.events(id) {
			if p, ok := ev.Data.(*run.AttemptLate); ok && p.Raw != "" && p.Prompt != "" {
				late++
			}
		}
		if v := r.wait(id); v.Status != run.Cancelled || v.Items.Succeeded != 0 || late != 4 {
			t.Errorf("%s with %d succeeded, %d late results", v.Status, v.Items.Succeeded, late)
		}
	})
}

func TestALostNodesItemsGoElsewhere(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		r := newRig(t, f, Options{})
		id := r.submit(p, items(60))
		time.Sleep(7 * time.Second)
		if r.e.Busy("n2") == 0 {
			t.Fatal("n2 has nothing to lose")
		}
		f.lose("n2")
		v := r.wait(id)
		if v.Status != run.Completed || v.Items.Succeeded != 60 {
			t.Fatalf("%+v", v)
		}
		lost := 0
		for _, ev := range r.events(id) {
			if p, ok := ev.Data.(*run.AttemptFailed); ok {
				lost++
				if p.Cause.Kind != run.KindNodeLost || p.Counted || p.Node != "n2" {
					t.Errorf("%+v", p)
				}
			}
		}
		if lost == 0 {
			t.Error("no attempt was lost")
		}
		r.once(id)
	})
}

// TestAJudgeOfAnotherModel has two models that do not fit together on one machine, and a judge that sends things back.
func TestAJudgeOfAnotherModel(t *testing.T) {
	p := program(t, `
  const r = await batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer,
    evaluate: { criteria: ["it is short"], model: "judge:8b" } });
  return r.failures.map((f: any) => f.kind + ": " + f.message);`)
	const tooLong = `not met: it is short (subject, line 1: "its words")`
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.answer = func(a Attempt) Result {
			r := value(a)
			switch {
			case a.Kind == CallEvaluate && a.Item == 3: // never satisfied
				r.Value = judgement(a, "not_met")
			case a.Kind == CallEvaluate && a.Item == 4:
				r.Value = json.RawMessage(`{"answers":[{"criterion":"it is short","said":"cannot_tell","counted":"cannot_tell"}]}`)
			case a.Kind == CallGenerate && a.Number == 2 && !slices.Equal(a.Feedback, []string{tooLong}):
				r = fails(a, "no_feedback", Never)
			}
			return r
		}
		r := newRig(t, f, Options{})
		id := r.submit(p, items(8))
		v := r.wait(id)
		if v.Status != run.Incomplete || v.Items.Succeeded != 6 || v.Items.Failed != 2 {
			t.Fatalf("%+v", v)
		}
		if got := r.output(id, "result"); got != `["sent_back: not met: it is short (subject, line 1: \"its words\")","needs_human: no judge can show it: it is short"]` {
			t.Errorf("the result is %s", got)
		}
		if loads := f.nodes[0].loads; loads > 10 {
			t.Errorf("%d loads for 8 items: the two models evict each other", loads)
		}
		r.once(id)
	})
}

func TestStepsInSequenceAndReads(t *testing.T) {
	p := program(t, `
  log("begin");
  const a = await generate({ model: "small:8b", prompt: "one" });
  const text = await read(a);
  const b = await generate({ model: "small:8b", prompt: "two {{item}}", item: text, schema: Answer });
  let missing = "";
  try { await read({ ref: "0".repeat(64), name: "gone", bytes: 1 }); } catch (e: any) { missing = e.kind; }
  output("draft", a);
  return { text, b, missing };`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.answer = func(a Attempt) Result {
			r := value(a)
			if !strings.Contains(string(a.Request), "schema") {
				r.Value, r.Text = nil, "a text < 1 & more"
			}
			return r
		}
		r := newRig(t, f, Options{})
		id := r.submit(p, map[string]any{})
		v := r.wait(id)
		// The missing artifact's step failed, caught or not: the run says so.
		if v.Status != run.Incomplete || len(v.Failures) != 1 || v.Failures[0].Kind != "missing_artifact" || len(v.Logs) != 1 {
			t.Fatalf("%+v", v)
		}
		want := `{"b":{"of":"\"a text < 1 & more\""},"missing":"missing_artifact","text":"a text < 1 & more"}`
		if got := r.output(id, "result"); got != want {
			t.Errorf("the result is\n%s, want\n%s", got, want)
		}
		outs, err := r.e.Outputs(t.Context(), id)
		if err != nil || outs[0].Ref == nil || outs[0].Ref.Bytes != 17 {
			t.Errorf("the draft is %+v, %v", outs[0], err)
		}
		page, err := r.e.Items(t.Context(), id, 1, 0, 0)
		if err != nil || len(page.Items) != 1 || page.Items[0].Text != "a text < 1 & more" {
			t.Errorf("step 1 is %+v, %v", page, err)
		}
	})
}

// TestOneCommitPerStep: a result, what the script asks for next, and its placement are durable together.
func TestOneCommitPerStep(t *testing.T) {
	p := program(t, `for (let i = 0; i < 50; i++) { await generate({ model: "small:8b", prompt: "x" + i, schema: Answer }); log("" + i); }`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		if v := r.wait(r.submit(p, nil)); v.Status != run.Completed || v.Calls != 50 {
			t.Fatalf("%+v", v)
		}
		// Submit, start with the first request, its placement after the load, what the load took, and the end come on top; on a machine
		// that is busy a script may react too late for the same commit now and then.
		if n := r.store.commits.Load(); n > 50+15 {
			t.Errorf("%d commits for 50 steps in sequence", n)
		}
	})
}

func TestAThrowNamesItsPlace(t *testing.T) {
	p := program(t, `
  await generate({ model: "small:8b", prompt: "one", schema: Answer });
  throw new Error("no such luck");`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		v := r.wait(r.submit(p, nil))
		if v.Status != run.Failed || !strings.HasPrefix(v.Error, "flow.ts:5:") || !strings.Contains(v.Error, "no such luck") {
			t.Errorf("%s: %s", v.Status, v.Error)
		}
	})
}

// TestEachCollectsWithoutCountingTwice: a step that failed inside each is one failure, under the name of its element.
func TestEachCollectsWithoutCountingTwice(t *testing.T) {
	p := program(t, `
  const r = await each(input.items, async (item: any) => {
    if (item === "item 001") throw new Error("not this one");
    return await generate({ model: "small:8b", prompt: "{{item}}", item, schema: Answer });
  });
  return r.coverage;`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.answer = func(a Attempt) Result {
			if string(a.Body) == `"item 002"` {
				return fails(a, "input_too_long", Never)
			}
			return value(a)
		}
		r := newRig(t, f, Options{})
		v := r.wait(r.submit(p, items(4)))
		n := 0
		for _, g := range v.Failures {
			n += len(g.Items)
		}
		if v.Status != run.Incomplete || n != 2 {
			t.Errorf("%s with %+v", v.Status, v.Failures)
		}
	})
}

func TestTheSameKeyIsTheSameRun(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		in, _ := json.Marshal(items(2))
		s := Submission{Workflow: "flow", Program: p, Input: in, Key: "nightly"}
		first, existing, err := r.e.Submit(t.Context(), s)
		if err != nil || existing {
			t.Fatal(existing, err)
		}
		for range 2 { // while it runs, and after
			again, existing, err := r.e.Submit(t.Context(), s)
			if err != nil || !existing || again != first {
				t.Errorf("%s, %v, %v; want %s", again, existing, err, first)
			}
			r.wait(first)
		}
		runs, err := r.e.Runs(t.Context(), Filter{States: []run.Status{run.Completed}})
		if err != nil || len(runs) != 1 || runs[0].ID != first || runs[0].Items.Succeeded != 2 || runs[0].Key != "nightly" {
			t.Errorf("the list is %+v, %v", runs, err)
		}
	})
}

func TestScriptsAreHostedWithinTheBound(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.takes = func(Attempt) time.Duration { return time.Minute }
		r := newRig(t, f, Options{MaxScripts: 2})
		var ids []string
		for range 3 {
			ids = append(ids, r.submit(p, items(1)))
			time.Sleep(time.Millisecond)
		}
		last, err := r.e.Run(t.Context(), ids[2])
		if err != nil || last.Status != run.Queued || len(last.Waiting) != 1 || last.Waiting[0].WaitingFor != "script" {
			t.Errorf("%+v, %v", last, err)
		}
		for _, id := range ids {
			if v := r.wait(id); v.Status != run.Completed {
				t.Errorf("%s is %s", id, v.Status)
			}
		}
	})
}

func TestAWatcherThatDoesNotReadBlocksNothing(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(2), Options{})
		id := r.submit(p, items(30))
		asleep, err := r.e.Watch(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.wait(id); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		if v := <-asleep; v.Status != run.Completed {
			t.Errorf("the sleeper finds a view in state %s, not the newest", v.Status)
		}
		if _, more := <-asleep; more {
			t.Error("the channel is not closed after the last view")
		}
	})
}

func TestTimeLimit(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.takes = func(Attempt) time.Duration { return 20 * time.Second }
		r := newRig(t, f, Options{})
		in, _ := json.Marshal(items(20))
		id, _, err := r.e.Submit(t.Context(), Submission{Workflow: "flow", Program: p, Input: in, TimeLimit: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		v := r.wait(id)
		if v.Status != run.TimedOut || v.Items.Succeeded != 8 || v.Items.Cancelled != 12 || !strings.Contains(v.Error, "30 s") {
			t.Errorf("%s %+v: %s", v.Status, v.Items, v.Error)
		}
		if took := v.Ended.Sub(v.Started); took < 40*time.Second {
			t.Errorf("it ended after %s: what was in flight did not finish", took)
		}
	})
}

func TestAModelThatFitsNowhere(t *testing.T) {
	p := program(t, `await generate({ model: "huge:70b", prompt: "x" });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		huge := shape
		huge.WeightBytes = 80 * gib
		for _, n := range f.nodes {
			n.Models = append(n.Models, scheduler70(&huge))
		}
		r := newRig(t, f, Options{})
		id := r.submit(p, nil)
		v := r.wait(id)
		if v.Status != run.Failed || len(v.Failures) != 1 || v.Failures[0].Kind != "cannot_fit" {
			t.Errorf("%s: %s %+v", v.Status, v.Error, v.Failures)
		}
	})
}

// A script names its models as it goes, so no submission can check them: a name that nobody has must end in a failure that
// says what to pull, not in a wait for ever.
func TestAModelThatNobodyHas(t *testing.T) {
	p := program(t, `await generate({ model: "absent:1b", prompt: "x" });`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(2), Options{})
		v := r.wait(r.submit(p, nil))
		if v.Status != run.Failed || len(v.Failures) != 1 || v.Failures[0].Kind != run.KindModelMissing || !strings.Contains(v.Failures[0].Next[0], "loopkeeper models pull absent:1b") {
			t.Errorf("%s: %s %+v", v.Status, v.Error, v.Failures)
		}
	})
}

func TestExplainAWaitingStep(t *testing.T) {
	p := program(t, `await generate({ model: "absent:1b", prompt: "x" });`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(2), Options{})
		id := r.submit(p, nil)
		time.Sleep(time.Second)
		why, err := r.e.Explain(t.Context(), id, -1)
		if err != nil || len(why) != 1 || why[0].Wait == "" || len(why[0].Nodes) != 2 {
			t.Errorf("%+v, %v", why, err)
		}
		v, err := r.e.Run(t.Context(), id)
		if err != nil || len(v.Waiting) != 1 || v.Waiting[0].Count != 1 || v.Waiting[0].WaitingFor != string(why[0].Wait) || v.Steps[0].WaitingFor == "" {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// TestPlacementSeesAWindow: what a placement looks at does not grow with what waits, and no turn places twice.
func TestPlacementSeesAWindow(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		const n = shown + 100
		most, calls := 0, 0
		r := newRig(t, newFarm(2), Options{Place: func(s scheduler.Snapshot) scheduler.Plan {
			most, calls = max(most, len(s.Waiting)), calls+1
			return scheduler.Place(s, scheduler.Limits{})
		}})
		id := r.submit(p, items(n))
		if v := r.wait(id); v.Status != run.Completed || v.Items.Succeeded != n {
			t.Fatalf("%+v", v)
		}
		r.e.Stop() // so that nobody counts any more
		// Each item causes a turn for its end; loads and starts add a few.
		if most != shown || calls > 2*n {
			t.Errorf("%d placements, the largest of %d tasks", calls, most)
		}
	})
}

// A script fails for reasons that have no line, too; its file is named all the same.
func TestEveryFailureOfAScriptNamesItsFile(t *testing.T) {
	for name, body := range map[string]string{
		"deadlock":    `await new Promise(() => {});`,
		"placeholder": "\n" + `await generate({ model: "small:8b", prompt: "Say {{thing}}" });`,
		"batch":       "\n" + `await batch({ model: "small:8b", items: ["a"], prompt: "Say {{thing}}" });`,
	} {
		p := program(t, body)
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, newFarm(1), Options{})
			v := r.wait(r.submit(p, nil))
			t.Log(name, v.Error)
			if v.Status != run.Failed || !strings.HasPrefix(v.Error, "flow.ts:") {
				t.Errorf("%s: %s, %q", name, v.Status, v.Error)
			}
			if name != "deadlock" && !strings.HasPrefix(v.Error, "flow.ts:4:") {
				t.Errorf("%s does not name the line: %q", name, v.Error)
			}
		})
	}
}

// What is known of the node under an attempt is part of the view, and a watcher hears of it although nothing of the run changed.
func TestAViewSaysThatANodeIsNotWell(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.takes = func(Attempt) time.Duration { return time.Hour }
		r := newRig(t, f, Options{})
		id := r.submit(p, items(2))
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		views, err := r.e.Watch(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if v := <-views; len(v.InFlight) != 2 || v.InFlight[0].NodeState != scheduler.NodeUp || !v.Simulated {
			t.Fatalf("%+v", v)
		}
		f.mu.Lock()
		f.nodes[0].State = scheduler.NodeDegraded
		f.mu.Unlock()
		f.change()
		deadline := time.After(time.Minute) // views that something else caused may come before
		for told := false; !told; {
			select {
			case v := <-views:
				told = len(v.InFlight) == 2 && v.InFlight[0].NodeState == scheduler.NodeDegraded
			case <-deadline:
				t.Fatal("no view tells of it")
			}
		}
		if _, err := r.e.Cancel(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
	})
}

// A failure on a stand-in is no more real than a result of one.
func TestFailuresOnAStandInAreMarked(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.answer = func(a Attempt) Result {
			r := fails(a, "empty_turn", Never)
			r.Report = Report{} // it says nothing itself
			return r
		}
		r := newRig(t, f, Options{})
		id := r.submit(p, items(2))
		v := r.wait(id)
		if !v.Simulated || len(v.Failures) != 1 || !v.Failures[0].Simulated {
			t.Errorf("%+v", v)
		}
		page, err := r.e.Items(t.Context(), id, -1, 0, 0)
		if err != nil || !page.Items[0].Simulated {
			t.Errorf("%+v, %v", page, err)
		}
	})
}
