package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// everything is a run that asks for everything: calls, tools with and without an effect, people, timers and children that do the same.
const everything = `
  const part = async (name: string) => {
    const made = await generate({ model: "small:8b", prompt: name, schema: Answer, retry: { attempts: 12 } });
    await tool("file", { text: name + " draft" });
    const said = await approve({ title: "send " + name + "?", label: name });
    await tool("mail", { text: name + " letter" });
    await sleep(30);
    return [made.of, said.comment];
  };
  const b: any = {};
  for (let i = 0; i < 3; i++) b["p" + i] = part(input.name + i);
  b.batch = (async () => (await batch({ items: ["x", "y", "z"], model: "small:8b", prompt: "{{item}}", schema: Answer, retry: { attempts: 12 } })).succeeded)();
  if (input.depth > 0) b.child = (async () => { const c = await spawn({ workflow: "everything", input: { depth: input.depth - 1, name: input.name + "c" } }); return [c.state, c.outputs.result]; })();
  return await all(b);`

// person is whoever answers; an answer that was acknowledged is remembered.
type person struct {
	*rig
	rng      *rand.Rand
	answered map[string]string // comments by run and step
}

// act does one thing at random. That the engine stops meanwhile is no error, and then nobody knows whether it was done.
func (p person) act(id string, bench *workbench) {
	fine := func(err error) bool {
		if err != nil && apierr.CodeOf(err) != apierr.Unavailable && apierr.CodeOf(err) != apierr.Conflict {
			p.t.Errorf("a person was refused: %v", err)
		}
		return err == nil
	}
	switch p.rng.IntN(6) {
	case 0:
		_, err := p.e.SuspendRun(p.t.Context(), id, "ada", "later")
		fine(err)
	case 1, 2:
		_, err := p.e.ResumeRun(p.t.Context(), id, "ada")
		fine(err)
	default:
		waits, err := p.e.Waits(p.t.Context(), "")
		if !fine(err) || len(waits) == 0 {
			return
		}
		w := waits[p.rng.IntN(len(waits))]
		if w.Kind == WaitUnknown { // they look, and tell the truth
			outcome := NotHappened
			var in struct{ Text string }
			_ = json.Unmarshal(w.Show[0], &in)
			if bench.did()[in.Text] > 0 {
				outcome = Happened
			}
			_, err := p.e.Settle(p.t.Context(), w.Run, w.Step, w.Item, Answer{Outcome: outcome, By: "ada"})
			fine(err)
			return
		}
		comment := fmt.Sprint("comment ", p.rng.Int())
		if _, err := p.e.Settle(p.t.Context(), w.Run, w.Step, 0, Answer{Outcome: run.Approved, By: "ada", Comment: comment}); fine(err) {
			p.answered[fmt.Sprint(w.Run, "/", w.Step)] = comment
		}
	}
}

// TestAnythingAndCrashes: no sequence of commands and crashes loses what was acknowledged, or does an external write twice.
func TestAnythingAndCrashes(t *testing.T) {
	p := flow(t, everything)
	for seed := range seeds(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 7))
				bench := newBench()
				bench.takes = func(ToolCall) time.Duration { return 5 * time.Second }
				bench.blind = seed%2 == 1
				f := newFarm(2)
				f.answer = faulty
				r := newRig(t, f, Options{Tools: bench, MaxTools: 2, Workflows: library{"everything": p}.find, MaxScripts: 20})
				id := r.submit(p, map[string]any{"depth": 2, "name": "n"})
				who := person{r, rng, map[string]string{}}
				crashes := 0
				crash := func() {
					<-r.e.Done()
					crashes++
					time.Sleep(time.Duration(rng.Int64N(int64(10 * time.Second))))
					r.store.left.Store(0)
					bench.mu.Lock()
					bench.stubborn = rng.IntN(2) == 0
					bench.mu.Unlock()
					r.start()
				}
				for range 400 {
					if r.store.left.Load() == 0 && crashes < 25 {
						r.store.before = rng.IntN(2) == 0
						r.store.left.Store(1 + rng.Int64N(8))
					}
					time.Sleep(time.Duration(rng.Int64N(int64(4 * time.Second))))
					select {
					case <-r.e.Done():
						crash()
					default:
						who.act(id, bench)
					}
				}
				r.store.left.Store(0)
				select {
				case <-r.e.Done():
					crash()
				default:
				}
				for range 2000 { // undisturbed to the end
					s, err := load(t.Context(), r.store, id)
					if err != nil {
						t.Fatal(err)
					}
					if s.Status.Ended() {
						break
					}
					time.Sleep(10 * time.Second)
					who.act(id, bench)
				}
				v := r.view(id)
				if v.Status != run.Completed {
					t.Fatalf("after %d crashes it is %s: %+v %+v", crashes, v.Status, v.Failures, v.Waiting)
				}
				if crashes < 5 {
					t.Errorf("only %d crashes: the test tests little", crashes)
				}
				for text, n := range bench.did() {
					if n != 1 {
						t.Errorf("%q was done %d times", text, n)
					}
				}
				if n := len(bench.did()); n != 18 {
					t.Errorf("%d things were done, want 18", n)
				}
				r.remembered(who.answered)
				r.once(id)
			})
		})
	}
}

// remembered checks that every answer that was acknowledged is the one in the books.
func (r *rig) remembered(answers map[string]string) {
	r.t.Helper()
	for where, comment := range answers {
		id, pos := where[:4], 0
		fmt.Sscanf(where[5:], "%d", &pos)
		s, err := load(r.t.Context(), r.store, id)
		if err != nil {
			r.t.Fatal(err)
		}
		var got struct{ Comment string }
		if err := json.Unmarshal(s.Step(pos).Result.Value, &got); err != nil || got.Comment != comment {
			r.t.Errorf("step %s was answered %q, the books say %q, %v", where, comment, got.Comment, err)
		}
	}
	if len(answers) == 0 {
		r.t.Error("nobody answered anything: the test tests little")
	}
}
