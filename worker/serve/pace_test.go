package serve

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// A model that is in memory has to answer sooner than one that has to be read from a slow disk first.
func TestCallThatHangsStallsSoonOnAModelThatIsLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ollamatest.Config{Faults: []ollamatest.Fault{{Kind: ollamatest.Hang, Probability: 1}}})
		stalls := func(key, says string, least, most time.Duration) {
			t.Helper()
			start := time.Now()
			f := r.mustGenerate(t, request(key)).GetFailure()
			took := time.Since(start)
			if f.GetKind() != string(calls.Stalled) || !strings.Contains(f.GetMessage(), says) || took < least || took > most {
				t.Errorf("after %s: %v", took, f)
			}
		}
		stalls("cold", "the load of 4.", 5*time.Minute, 7*time.Minute)
		if _, err := r.client.Load(t.Context(), &workerv1.LoadRequest{Model: request("").Model}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second) // until a report shows it
		stalls("warm", "was loaded", 4*time.Minute, 4*time.Minute+10*time.Second)
		start := time.Now()
		e, err := r.client.Embed(t.Context(), &workerv1.EmbedRequest{Call: &workerv1.Call{Key: "e"}, Model: &workerv1.ModelSpec{Name: "nomic-embed-text"},
			Inputs: []*workerv1.Body{body("text")}})
		if f := e.GetOutcome().GetFailure(); err != nil || f.GetKind() != string(calls.Stalled) || time.Since(start) > 5*time.Minute {
			t.Errorf("embed after %s: %v %v", time.Since(start), f, err)
		}
		r.line.hung.Store(true)
		stalls("nothing answers", "list", time.Minute, time.Minute)
	})
}

func TestPaceIsTheSlowestMeasuredUntilACallStalls(t *testing.T) {
	var p paces
	turn := func(load, prompt time.Duration, tokens int) calls.Outcome {
		return calls.Outcome{Kind: calls.OK, Turns: []calls.Turn{{Report: calls.Report{Model: "m",
			Counts: ollama.Counts{LoadDuration: load, PromptDuration: prompt, PromptTokens: tokens}}}}}
	}
	p.learn(turn(50*time.Millisecond, time.Millisecond, 20), 10e9)
	if got := p.of("m"); got != (calls.Pace{}) {
		t.Errorf("what is too short was measured: %+v", got)
	}
	p.learn(turn(5*time.Second, 10*time.Second, 1000), 10e9)
	p.learn(turn(2*time.Second, time.Second, 1000), 10e9)
	if got := p.of("m:latest"); got != (calls.Pace{LoadRate: 2e9, PromptRate: 100}) {
		t.Errorf("%+v", got)
	}
	stalled := turn(0, 0, 0)
	stalled.Kind = calls.Stalled
	if p.learn(stalled, 10e9); p.of("m") != (calls.Pace{}) {
		t.Errorf("after a stall: %+v", p.of("m"))
	}
}
