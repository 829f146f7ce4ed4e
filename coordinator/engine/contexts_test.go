package engine

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// One model has one context, or Ollama would load it again and again; "llama3" and "llama3:latest" are one model.
func TestContextOfAModelWhateverItsTag(t *testing.T) {
	e := New(Options{Limits: scheduler.Limits{Contexts: map[string]int{"llama3": 1000, "qwen3:8b": 2000, "phi:latest": 3000}}})
	for model, want := range map[string]int{"llama3": 1000, "llama3:latest": 1000, "llama3:70b": 0, "qwen3:8b": 2000, "qwen3": 0, "phi": 3000, "phi:latest": 3000} {
		if got := e.baseContext(model, nil); got != want {
			t.Errorf("the context of %s is %d, want %d", model, got, want)
		}
	}
}

// Where the default fits no machine, the largest context that does is chosen, and none that is too small for a prompt.
func TestAContextIsChosenFromWhatFits(t *testing.T) {
	e := New(Options{})
	node := func(bytes uint64) []scheduler.Node {
		f := newFarm(1)
		f.nodes[0].Pools[0].Total.N, f.nodes[0].Pools[0].Free.N = bytes, bytes
		return f.Nodes()
	}
	if got := e.baseContext("small:8b", node(13*gib)); got != 8192 {
		t.Errorf("with room enough: %d", got)
	}
	small := e.baseContext("small:8b", node(8*gib))
	if small < leastContext || small >= 8192 {
		t.Errorf("with little room: %d", small)
	}
	if ok, why := scheduler.Admit(scheduler.Snapshot{Nodes: node(8 * gib)}, "small:8b", small, scheduler.Limits{}); !ok {
		t.Errorf("%d tokens do not fit: %s", small, why.Summary)
	}
	if got := e.baseContext("small:8b", node(4*gib)); got != 0 {
		t.Errorf("with no room: %d", got)
	}
}

// What is kept free on a machine is not there for a context: the one that is chosen for a run is one that its machine takes.
func TestAChosenContextLeavesTheReserve(t *testing.T) {
	p := program(t, oneCall)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.nodes[0].Pools[0].Total.N, f.nodes[0].Pools[0].Free.N = 8*gib, 8*gib
		r := newRig(t, f, Options{Nodes: map[string]NodeLimits{"box-1": {Reserve: 1200 << 20}}})
		snap, err := r.e.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		chosen := r.e.Context(snap, "small:8b")
		if free := r.e.baseContext("small:8b", f.Nodes()); chosen < leastContext || chosen >= free {
			t.Errorf("%d tokens with a reserve, %d without", chosen, free)
		}
		if ok, why := scheduler.Admit(snap, "small:8b", chosen, scheduler.Limits{}); !ok {
			t.Errorf("%d tokens do not fit: %s", chosen, why.Summary)
		}
		if v := r.wait(r.submit(p, nil)); v.Status != run.Completed {
			t.Errorf("%s: %+v", v.Status, v.Failures)
		}
		if got := f.sent()[0].Context; got != chosen {
			t.Errorf("sent with %d tokens, %d were chosen", got, chosen)
		}
	})
}

// ollama#8903, Aider#4687: clients whose options differ have a model loaded anew on each call.
func TestStepsThatAskForOtherContextsCauseNoReload(t *testing.T) {
	p := program(t, `
	const call = (x: string, options?: any) => generate({ model: "small:8b", prompt: x, options });
	await call("a"); await call("b", { num_ctx: 2048 }); await call("c", { num_ctx: 4096 }); await call("d"); await call("e", { num_ctx: 2048 });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		r := newRig(t, f, Options{})
		if v := r.wait(r.submit(p, nil)); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		if n := f.node("n1").loads; n != 1 {
			t.Errorf("%d loads", n)
		}
		for _, a := range f.sent() {
			if a.Context != 8192 {
				t.Errorf("%s was sent with a context of %d", a.Key, a.Context)
			}
		}
	})
}

// What a step asks for beyond what there is costs one load, and later steps do not go back; a run beside it uses the same.
func TestAContextOnlyGrowsWithinARun(t *testing.T) {
	p := program(t, `
	const call = (x: string, options?: any) => generate({ model: "small:8b", prompt: x, options });
	await call("a", { num_ctx: 2048 }); await call("b", { num_ctx: 4096 }); await call("c", { num_ctx: 2048 }); await call("d", { num_ctx: 4096 });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		r := newRig(t, f, Options{})
		if v := r.wait(r.submit(p, nil)); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		var got []int
		for _, a := range f.sent() {
			got = append(got, a.Context)
		}
		if raw, _ := json.Marshal(got); string(raw) != "[2048,4096,4096,4096]" || f.node("n1").loads != 2 {
			t.Errorf("contexts %s, %d loads", raw, f.node("n1").loads)
		}
	})
}

// A run whose one call asks for a larger context does not wait behind the whole batch of another run of the same model, nor does one that
// asks for a smaller one; while it waits, it says what for.
func TestACallOfAnotherContextDoesNotWaitBehindABatch(t *testing.T) {
	many := program(t, `return (await batch({ model: "small:8b", prompt: "{{item}}", items: input.items, options: { num_ctx: 2048 } })).coverage;`)
	one := program(t, `await generate({ model: "small:8b", prompt: "one", options: { num_ctx: input.tokens } });`)
	waits := map[int]string{
		4096: "small:8b waits for another context: box-1 has it loaded at 2048 tokens, and loads it anew at 4096 once what runs there has ended",
		1024: "every slot of small:8b is busy: box-1 4 of 4",
	}
	for tokens, loads := range map[int]int{4096: 2, 1024: 1} {
		synctest.Test(t, func(t *testing.T) {
			f := newFarm(1)
			r := newRig(t, f, Options{})
			batch := r.submit(many, items(200)) // four at once, a second each
			time.Sleep(20 * time.Second)
			id := r.submit(one, map[string]int{"tokens": tokens})
			time.Sleep(100 * time.Millisecond)
			said, err := r.e.Explain(t.Context(), id, -1)
			if want := waits[tokens]; err != nil || len(said) != 1 || said[0].Summary != want {
				t.Errorf("%d tokens: %v, %+v, want %s", tokens, err, said, want)
			}
			v := r.wait(id)
			if took := v.Ended.Sub(v.Created); v.Status != run.Completed || took > 15*time.Second {
				t.Errorf("%d tokens: %s after %s", tokens, v.Status, took)
			}
			if v := r.wait(batch); v.Status != run.Completed {
				t.Errorf("%d tokens: the batch is %s", tokens, v.Status)
			}
			if n := f.node("n1").loads; n != loads {
				t.Errorf("%d tokens: %d loads", tokens, n)
			}
		})
	}
}
