package serve

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls/modes"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// thinks are the values of thinking as the contract spells them; levels have the same words on both sides.
var thinks = map[ollama.Think]string{ollama.ThinkDefault: "", ollama.ThinkOff: "false", ollama.ThinkOn: "true"}

func modeMessage(m modes.Mode) *workerv1.CallMode {
	word, ok := thinks[m.Think]
	if !ok {
		word = string(m.Think)
	}
	return &workerv1.CallMode{Endpoint: m.Endpoint, Think: word, Field: m.Field, Ordered: m.Ordered, ServerVersion: m.ServerVersion,
		Time: timestamppb.New(m.Time), None: m.None}
}

// modeOf reads a mode that the coordinator has kept. One that makes no sense is none: the worker finds out for itself.
func modeOf(m *workerv1.CallMode) modes.Mode {
	word, err := think(m.GetThink())
	if m.GetServerVersion() == "" || err != nil || m.GetEndpoint() != modes.Generate && m.GetEndpoint() != modes.Chat ||
		m.GetField() != modes.Content && m.GetField() != modes.Thinking {
		return modes.Mode{}
	}
	return modes.Mode{Endpoint: m.GetEndpoint(), Think: word, Field: m.GetField(), Ordered: m.GetOrdered(), ServerVersion: m.GetServerVersion(),
		Time: m.GetTime().AsTime(), None: m.GetNone()}
}
