package modes

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/tinymodel"
)

// thinkingTemplate is what Ollama takes for the template of a model that thinks: tags around .Thinking. The prompt ends with
// the opening one, so that all that comes is a thought until the closing one.
const thinkingTemplate = "{{ range .Messages }}{{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}{{ .Content }}\n{{ end }}{{ if .Think }}<think>\n{{ end }}"

// The table of research: judgement §2.1 on a real Ollama 0.17.4: where the value arrives, by kind of model, endpoint and
// thinking. The model has no mind: it never closes a thought and writes none of harmony's channels, so of the ways that need
// one only that they end without a value can be seen here.
func TestRealServerLosesFormats(t *testing.T) {
	s := tinymodel.Start(t, tinymodel.ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
	s.Create(t, "tiny", tinymodel.Options{})
	derive := func(r api.CreateRequest) {
		r.From = "tiny"
		if err := s.Client.Create(t.Context(), &r, func(api.ProgressResponse) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	derive(api.CreateRequest{Model: "template", Template: thinkingTemplate})
	derive(api.CreateRequest{Model: "parser", Parser: "qwen3.5"})
	derive(api.CreateRequest{Model: "harmony", Parser: "harmony"})
	c, err := ollama.New(ollama.Options{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for model, row := range map[string]map[string]string{
		"tiny":     {"chat/off": "value", "chat/on": "refused", "chat/": "value", "generate/off": "value", "generate/on": "refused", "generate/": "value"},
		"template": {"chat/off": "value", "chat/on": "thought", "chat/": "thought", "generate/off": "value", "generate/on": "value in thinking", "generate/": "value in thinking"},
		"parser":   {"chat/off": "free text", "chat/on": "thought", "chat/": "thought", "generate/off": "value", "generate/on": "value in thinking", "generate/": "value in thinking"},
		"harmony":  {"chat/off": "nothing", "chat/low": "nothing", "chat/": "nothing", "generate/off": "nothing", "generate/low": "nothing", "generate/": "nothing"},
	} {
		for way, want := range row {
			if got := ask(t, c, model, way); got != want {
				t.Errorf("%s by %s: %s, want %s", model, way, got, want)
			}
		}
	}
	for model, want := range map[string]Mode{
		"tiny":     {Endpoint: Generate, Think: ollama.ThinkOff, Field: Content, Ordered: true},
		"template": {Endpoint: Generate, Think: ollama.ThinkOff, Field: Content, Ordered: true},
		"parser":   {Endpoint: Generate, Think: ollama.ThinkOff, Field: Content, Ordered: true},
		"harmony":  {Endpoint: Generate, Think: ollama.ThinkOff, Field: Content, None: true},
	} {
		var tried []string
		got, err := book().Find(t.Context(), "0.17.4", Target{Name: model, Digest: model, NumCtx: 1024, Levels: model == "harmony"}, Mode{}, asking(c, &tried))
		want.ServerVersion, want.Time = "0.17.4", got.Time
		if err != nil || got != want {
			t.Errorf("%s: %+v %v by %q", model, got, err, tried)
		}
	}
}

// ask says in words what a way brings.
func ask(t *testing.T, c *ollama.Client, model, way string) string {
	t.Helper()
	format := json.RawMessage(`{"type":"object","properties":{"v":{"type":"string","minLength":8,"maxLength":40}},"required":["v"]}`)
	zero := 0.0
	r := ollama.Request{Model: model, Prompt: "Say something.", Format: format, Sampling: ollama.Sampling{NumCtx: 1024, NumPredict: 60, Temperature: &zero}}
	endpoint, think, _ := strings.Cut(way, "/")
	r.Think = ollama.Think(think)
	call := c.Generate
	if endpoint == Chat {
		call = c.Chat
	}
	reply, err := call(t.Context(), r, nil)
	switch {
	case ollama.KindOf(err) == ollama.BadRequest:
		return "refused"
	case err != nil:
		t.Fatalf("%s by %s: %v", model, way, err)
		return ""
	case json.Valid([]byte(reply.Text)):
		return "value"
	case json.Valid([]byte(reply.Thinking)):
		return "value in thinking"
	case reply.Text != "":
		return "free text"
	case reply.Thinking != "":
		return "thought"
	default:
		return "nothing"
	}
}
