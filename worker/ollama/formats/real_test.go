package formats

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/structure"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/tinymodel"
)

// Every recorded schema goes to a real Ollama 0.17.4 in the form in which we send it. In their original form more than
// twenty of them end in an error, a dead runner, a dead server or a full memory.
func TestRealServerTakesEveryFormat(t *testing.T) {
	server := tinymodel.Start(t, tinymodel.ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
	server.Create(t, "tiny", tinymodel.Options{})
	c, err := ollama.New(ollama.Options{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	schemas := map[string]string{
		"rewritten pattern": `{"type":"object","properties":{"v":{"type":"string","pattern":"^(?:\\d{2}|[\\w.-]{3})\\.(a|b)$"}},"required":["v"]}`,
		"many bounds":       `{"type":"array","maxItems":2000,"items":{"type":"array","maxItems":2000,"items":{"type":"string","minLength":2,"maxLength":2000}}}`,
	}
	enforced := map[string]bool{"rewritten pattern": true}
	for _, r := range recordings(t) {
		schemas[r.Name], enforced[r.Name] = r.text(), r.enforced()
	}
	delete(enforced, "enum value of wrong type (type string, enum [1])") // no value satisfies it
	zero, sent := 0.0, 0
	for name, text := range schemas {
		s, err := structure.Compile(json.RawMessage(text))
		if err != nil {
			continue
		}
		r, err := c.Generate(t.Context(), ollama.Request{
			Model: "tiny", Prompt: "Fill it in.", Format: s.Format(), Think: ollama.ThinkOff,
			Sampling: ollama.Sampling{NumCtx: 4096, NumPredict: 300, Temperature: &zero},
		}, nil)
		if err != nil {
			t.Errorf("%s: %s: %v", name, s.Format(), err)
			continue
		}
		sent++
		e := s.Extract(r.Text, r.Thinking, r.DoneReason == "length")
		switch {
		case e.Finding == structure.Value || e.Finding == structure.Cut:
		case e.Finding == structure.Refused && !enforced[name]: // what no grammar holds, or nothing can satisfy
		default:
			t.Errorf("%s: finding %d %q, raw %q", name, e.Finding, e.Reasons, r.Text)
		}
	}
	if sent < 100 {
		t.Errorf("only %d of %d schemas were sent", sent, len(schemas))
	}
}
