package residency

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// When the coordinator dies nobody renews what it had loaded, and the card is free ten minutes later, without anybody's help.
func TestTheCardIsFreeSoonAfterWeDied(t *testing.T) {
	forever := card(8)
	forever.KeepAlive = -1 // OLLAMA_KEEP_ALIVE of its owner
	live(t, func(t *testing.T, h *house) {
		h.submit(writer, nil, reports(200)...)
		time.Sleep(20 * time.Second)
		h.shut()
		time.Sleep(2 * time.Minute) // what runs is ended by its worker
		if got := h.stands[0].Loaded(); len(got) != 1 {
			t.Errorf("in memory: %v", got)
		}
		time.Sleep(9 * time.Minute)
		if got := h.stands[0].Loaded(); len(got) != 0 {
			t.Errorf("eleven minutes after: %v", got)
		}
		h.open()
	}, forever)
}

// ollama#11458, #9355: keep_alive is ignored, so nothing goes by itself. What nothing uses is unloaded all the same.
func TestKeepAliveIsIgnoredAndTheModelGoesAllTheSame(t *testing.T) {
	forever := card(8, ollamatest.Fault{Kind: ollamatest.KeepAliveLost, Probability: 1})
	forever.KeepAlive = -1
	live(t, func(t *testing.T, h *house) {
		h.end(h.submit(writer, nil, report(1)))
		time.Sleep(4 * time.Minute)
		if got := h.stands[0].Loaded(); len(got) != 1 {
			t.Errorf("after four minutes: %v", got)
		}
		time.Sleep(2 * time.Minute)
		if got := h.stands[0].Loaded(); len(got) != 0 {
			t.Errorf("after six minutes: %v", got)
		}
	}, forever)
}

// ollama#7779, #13234: "Stopping…" for ever: an unload that hangs. The machine is not waited for; the work goes to another one.
func TestAnUnloadHangsAndTheQueueMovesOn(t *testing.T) {
	live(t, func(t *testing.T, h *house) {
		h.end(h.submit(writer, nil, reports(30)...)) // on both machines
		for _, s := range h.stands {
			if len(s.Loaded()) != 1 {
				t.Fatalf("in memory: %v", s.Loaded())
			}
		}
		began := time.Now()
		h.end(h.submit(judge, nil, reports(5)...))
		if took := time.Since(began); took > 90*time.Second {
			t.Errorf("it took %s", took)
		}
		if got := h.stands[1].Loaded(); !slices.Contains(got, judge) {
			t.Errorf("the other machine holds %v", got)
		}
	}, card(8, ollamatest.Fault{Kind: ollamatest.HungUnload, Probability: 1}), card(8))
}

// ollama#11812: after a spill the next model runs on the processor only. The load is looked at, and the step placed again.
func TestTheNextModelLoadsOntoTheProcessorAndIsPlacedAgain(t *testing.T) {
	live(t, func(t *testing.T, h *house) {
		began := time.Now()
		r := h.end(h.submit(writer, nil, reports(3)...))
		if r.GetItems().GetRetried() != 0 {
			t.Errorf("%d calls ran on the processor first", r.GetItems().GetRetried())
		}
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute { // one pause
			t.Errorf("it took %s", took)
		}
		got := h.incidents()
		if len(got) != 1 || !strings.Contains(got[0], "spilled: qwen2.5:7b at 8192 tokens did not fit on machine 1") {
			t.Errorf("%q", got)
		}
	}, card(8, ollamatest.Fault{Kind: ollamatest.CPULoad, Probability: 1, Limit: 1}))
}

// gpustack#6044: memory that other programs have counts. A game that starts after the last report, before the load, makes the model
// spill: it is unloaded before anything ran on it, and its step is placed elsewhere.
func TestAGameStartsJustBeforeALoad(t *testing.T) {
	live(t, func(t *testing.T, h *house) {
		h.stands[0].Occupy(5 << 30)
		r := h.end(h.submit(writer, nil, reports(3)...))
		if r.GetItems().GetSucceeded() != 3 || r.GetItems().GetRetried() != 0 {
			t.Errorf("%v", r.GetItems())
		}
		for _, c := range h.stands[0].Calls() {
			if c.Prompt != "" {
				t.Errorf("call %d ran beside the game", c.N)
			}
		}
		if n := h.stands[0].Loads(); n != 1 || len(h.stands[0].Loaded()) != 0 {
			t.Errorf("%d loads beside the game, in memory: %v", n, h.stands[0].Loaded())
		}
		if got := h.incidents(); len(got) != 1 || !strings.Contains(got[0], "fit on its accelerator") {
			t.Errorf("%q", got)
		}
	}, card(8), card(8))
}

// ollama#5464, #10053: after a suspend the GPU is gone, and ps shows what it showed before. The rate of the next load's first calls
// tells, and the work goes elsewhere.
func TestTheGPUIsLostAndPSShowsNothing(t *testing.T) {
	live(t, func(t *testing.T, h *house) {
		h.end(h.submit(writer, nil, reports(20)...)) // the rates are known
		time.Sleep(10 * time.Minute)
		h.stands[0].SetFaults(ollamatest.Fault{Kind: ollamatest.GPULost, Probability: 1})
		h.end(h.submit(writer, nil, reports(40)...))
		slow := 0
		for _, c := range h.stands[0].Calls() {
			if c.Fault == ollamatest.GPULost {
				slow++
			}
		}
		if slow < 2 || slow > 4 {
			t.Errorf("%d calls on the card that is lost", slow)
		}
		if got := h.incidents(); len(got) != 1 || !strings.Contains(got[0], "tokens a second") {
			t.Errorf("%q", got)
		}
	}, card(8), card(8))
}

// ollama#13227: what others load is theirs. It is never unloaded, counts as used, and what it evicts of ours is told.
func TestAnotherProgramLoadsItsModelAndKeepsIt(t *testing.T) {
	live(t, func(t *testing.T, h *house) {
		h.end(h.submit(writer, nil, report(1)))
		url, web := h.stands[0].StartPipe(t)
		client := ollamatest.Client(url, web)
		own := &api.GenerateRequest{Model: judge, KeepAlive: &api.Duration{Duration: time.Hour}}
		if err := client.Generate(t.Context(), own, func(api.GenerateResponse) error { return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		got := h.incidents()
		if len(got) != 1 || !strings.Contains(got[0], "vanished: qwen2.5:7b is gone") || !strings.Contains(got[0], "another program loaded mistral:7b") {
			t.Errorf("%q", got)
		}
		id := h.submit(writer, nil, report(2)) // waits for as long as the other program keeps its own
		time.Sleep(50 * time.Minute)
		if got := h.stands[0].Loaded(); !slices.Equal(got, []string{judge}) {
			t.Errorf("in memory: %v", got)
		}
		h.end(id)
	}, card(8))
}

// Nothing of what was learned is lost with the coordinator: after a restart a node's speeds and loads are known.
func TestARestartKnowsTheMachines(t *testing.T) {
	live(t, func(t *testing.T, h *house) {
		h.end(h.submit(writer, nil, reports(10)...))
		h.shut()
		h.open()
		time.Sleep(5 * time.Second)
		rows, err := h.store.Learned(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]int{}
		for _, r := range rows {
			kinds[r.Kind]++
		}
		for _, kind := range []string{"held", "margin", "rate", "speed"} {
			if kinds[kind] != 1 {
				t.Errorf("%d rows of %s: %v", kinds[kind], kind, kinds)
			}
		}
		nodes, err := h.client.ListNodes(t.Context(), &coordinatorv1.ListNodesRequest{})
		if err != nil || len(nodes.GetNodes()) != 1 {
			t.Fatalf("%v %v", nodes, err)
		}
		h.end(h.submit(writer, nil, report(1)))
		if n := h.loads(); n != 1 {
			t.Errorf("%d loads", n)
		}
	}, card(8))
}
