package fleet

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// probed is a report of a worker that knows how to call its only model.
func probed(version string) *workerv1.NodeReport {
	r := report("qwen3:8b")
	r.Ollama.Version = version
	r.Models[0].Mode = &workerv1.CallMode{Endpoint: "chat", Think: "low", Field: "content", Ordered: true, ServerVersion: version}
	return r
}

// A mode outlives the worker that found it, and the coordinator; it does not outlive the version that it holds for, nor the digest.
func TestModesOutliveWorkerAndCoordinator(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		m := newMachine("den")
		h.start("den:1", m)
		f := h.fleet(static("den:1"))
		settle(5 * time.Second)
		if got := f.Mode("den", "qwen3:8b"); got != nil {
			t.Errorf("before anybody probed: %v", got)
		}
		m.say(probed("0.17.4"))
		settle(10 * time.Second)
		want := probed("0.17.4").Models[0].Mode
		holds := func(when string) {
			t.Helper()
			if got := f.Mode("den", "qwen3:8b"); !proto.Equal(got, want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		holds("as reported")
		m.say(report("qwen3:8b"))
		settle(10 * time.Second)
		holds("the worker has forgotten it")
		away := report("qwen3:8b")
		away.Ollama = &workerv1.Ollama{Error: "refused"}
		m.say(away)
		settle(10 * time.Second)
		holds("its Ollama is away")
		m.stop()
		f.Stop()
		f = h.fleet()
		settle(time.Second)
		holds("the coordinator has restarted")
		again := newMachine("den")
		h.start("den:1", again)
		settle(time.Minute)
		holds("and the worker came back without it")
		if f.Mode("den", "") != nil || f.Mode("den", "other") != nil || f.Mode("attic", "qwen3:8b") != nil {
			t.Error("a mode of a model that is not there")
		}
		newer := report("qwen3:8b")
		newer.Ollama.Version = "0.21.1"
		again.say(newer)
		settle(10 * time.Second)
		if got := f.Mode("den", "qwen3:8b"); got != nil {
			t.Errorf("on another version: %v", got)
		}
		again.say(probed("0.21.1"))
		settle(10 * time.Second)
		want = probed("0.21.1").Models[0].Mode
		holds("probed anew")
	})
}
