package serve

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// harmony is a model that gets a format applied in a chat at a level only.
func harmony() ollamatest.Config {
	return ollamatest.Config{Memory: 80 << 30, Models: []ollamatest.Model{{Name: "qwen3:8b", Family: "gptoss", Vocab: 1000}}}
}

func wantsValue(key string) *workerv1.GenerateRequest {
	g := request(key)
	g.SchemaJson = []byte(`{"type":"object","properties":{"v":{"type":"string"}},"required":["v"]}`)
	return g
}

func (r *rig) modelNow(name string) *workerv1.Model {
	for _, m := range r.server.Report().GetModels() {
		if m.GetName() == name {
			return m
		}
	}
	return nil
}

// What a probe found is in the outcome at once, and in the report of the next heartbeat; text needs none.
func TestModesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, harmony())
		if m := r.modelNow("qwen3:8b"); m.GetFamily() != "gptoss" || m.GetMode() != nil {
			t.Errorf("before: %v", m)
		}
		if out := r.mustGenerate(t, request("text")); out.GetFailure() != nil || out.GetReport().GetMode() != nil {
			t.Errorf("a text: %v", out)
		}
		out := r.mustGenerate(t, wantsValue("value"))
		mode := out.GetReport().GetMode()
		if out.GetFailure() != nil || mode.GetEndpoint() != "chat" || mode.GetThink() != "low" || mode.GetField() != "content" || !mode.GetOrdered() ||
			mode.GetServerVersion() != "0.17.4" || mode.GetNone() || mode.GetTime() == nil {
			t.Fatalf("%v", out)
		}
		time.Sleep(4 * time.Second)
		if m := r.modelNow("qwen3:8b"); !proto.Equal(m.GetMode(), mode) {
			t.Errorf("in the report: %v, want %v", m.GetMode(), mode)
		}
	})
}

// A coordinator that comes back may have learned the mode meanwhile: the call is the same.
func TestWhatWasLearnedMakesNoOtherCall(t *testing.T) {
	r := newRig(t, harmony())
	first := r.mustGenerate(t, wantsValue("k"))
	again := wantsValue("k")
	again.Model.Mode = first.GetReport().GetMode()
	if out := r.mustGenerate(t, again); !proto.Equal(out, first) {
		t.Errorf("%v", out)
	}
}

// A coordinator that knows the mode saves the probe; one that knows it of another version, or nonsense, does not.
func TestAKnownModeIsTaken(t *testing.T) {
	good := &workerv1.CallMode{Endpoint: "chat", Think: "high", Field: "content", ServerVersion: "0.17.4"}
	for name, c := range map[string]struct {
		change func(*workerv1.CallMode)
		probed bool
		think  string
	}{
		"good":            {func(*workerv1.CallMode) {}, false, "high"},
		"another version": {func(m *workerv1.CallMode) { m.ServerVersion = "0.16.2" }, true, "low"},
		"no version":      {func(m *workerv1.CallMode) { m.ServerVersion = "" }, true, "low"},
		"no endpoint":     {func(m *workerv1.CallMode) { m.Endpoint = "" }, true, "low"},
		"nonsense":        {func(m *workerv1.CallMode) { m.Think = "hard" }, true, "low"},
		"no field":        {func(m *workerv1.CallMode) { m.Field = "" }, true, "low"},
	} {
		t.Run(name, func(t *testing.T) {
			r, g := newRig(t, harmony()), wantsValue("k")
			g.Model.Mode = proto.Clone(good).(*workerv1.CallMode)
			c.change(g.Model.Mode)
			out := r.mustGenerate(t, g)
			probed := len(r.ollama.Probes()) > 0
			if out.GetFailure() != nil || probed != c.probed || out.GetReport().GetMode().GetThink() != c.think {
				t.Errorf("probed %v, %v", probed, out)
			}
		})
	}
}
