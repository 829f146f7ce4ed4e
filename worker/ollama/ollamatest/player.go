package ollamatest

import (
	"encoding/json"

	"github.com/ollama/ollama/api"
)

// Player may answer a request for text in place of the stand-in's own words; ok is false where it leaves it to these. It may be called
// from several goroutines.
type Player func(Asked) (said Said, ok bool)

// Asked is what a request asks for.
type Asked struct {
	Endpoint string // generate or chat
	Model    string
	System   string
	Prompt   string        // of a chat the last message of a user
	Messages []api.Message // of a chat
	Tools    api.Tools
	Format   json.RawMessage // nil when free
	Seed     int
}

// Said is a model's answer. Calls are for a chat.
type Said struct {
	Thinking, Content string
	Calls             []api.ToolCall
}

// played has the player answer, if there is one and it does.
func (s *Server) played(g *generation, opts api.Options) (Said, bool) {
	if s.cfg.Player == nil || g.prompt == ProbePrompt {
		return Said{}, false
	}
	a := Asked{Endpoint: g.endpoint, Model: g.model.Name, System: g.system, Prompt: g.user, Messages: g.messages, Tools: g.tools, Seed: opts.Seed}
	if g.structured() {
		a.Format = g.format
	}
	return s.cfg.Player(a)
}
