package formats

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/structure"
	"github.com/loopkeeper/loopkeeper/proto/structure/structuretest"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/tinymodel"
)

// seeds is how often each schema is asked for, as in the measurements.
const seeds = 25

// answerLimit is how long a server may take for one answer; the longest here are some 300 tokens of a model of 100 kB.
const answerLimit = 60 * time.Second

// tiny is a real server with a model that keeps to nothing but the grammar.
type tiny struct{ client *ollama.Client }

func newTiny(t testing.TB) tiny {
	t.Helper()
	server := tinymodel.Start(t, tinymodel.ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
	server.Create(t, "tiny", tinymodel.Options{})
	return connect(t, server.URL)
}

func connect(t testing.TB, url string) tiny {
	t.Helper()
	c, err := ollama.New(ollama.Options{BaseURL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return tiny{c}
}

// ask has one answer made, with the format exactly as it is.
func (m tiny) ask(ctx context.Context, format json.RawMessage, seed int64, tokens int) (ollama.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	warm := 1.0
	return m.client.Generate(ctx, ollama.Request{
		Model: "tiny", Prompt: "Fill it in.", Format: format, Think: ollama.ThinkOff,
		Sampling: ollama.Sampling{NumCtx: 4096, NumPredict: tokens, Temperature: &warm, Seed: seed},
	}, nil)
}

// Every recorded schema goes to a real Ollama 0.17.4 in the form in which we send it; in their own, more than twenty of them
// end in an error, a dead runner, a dead server or a full memory. Each answer keeps to the format, by a validator that is not
// ours, and what the whole schema refuses is caught. Of those that were measured as enforced no answer is refused.
func TestRealServerEnforcesEveryRecordedSchema(t *testing.T) {
	m := newTiny(t)
	notEnforced := []string{
		"maxItems 2001", // we stop one below what the server stands
		"not const",     // the server ignores not
	}
	answers, sent := 0, 0
	for _, r := range structuretest.Recordings(t) {
		s, err := structure.Compile(json.RawMessage(r.Text()))
		if err != nil {
			continue // refused, so that nothing is sent; proto/structure holds each to its place
		}
		sent++
		t.Run(r.Name, func(t *testing.T) {
			accepts, err := structuretest.Accepts(s.Format())
			if err != nil {
				t.Fatal(err)
			}
			whole := 0
			for seed := range int64(seeds) {
				reply, err := m.ask(t.Context(), s.Format(), seed, 300)
				if err != nil {
					t.Fatalf("%s, seed %d: %v", s.Format(), seed, err)
				}
				e := s.Extract(reply.Text, reply.Thinking, reply.DoneReason == "length")
				if e.Finding == structure.Cut {
					continue
				}
				whole++
				if err := accepts(reply.Text); err != nil {
					t.Errorf("seed %d: %q does not keep to the format %s: %v", seed, reply.Text, s.Format(), err)
				}
				// Where keys are free, no grammar keeps a model from writing one twice.
				twice := e.Finding == structure.Refused && strings.Contains(e.Reasons[0], "the same key twice")
				refusable := twice || !r.Enforced() || slices.Contains(notEnforced, r.Name)
				if e.Finding != structure.Value && !(refusable && e.Finding == structure.Refused) {
					t.Errorf("seed %d: finding %d %q, raw %q", seed, e.Finding, e.Reasons, reply.Text)
				}
			}
			answers += whole
		})
	}
	if sent < 110 || answers < sent*seeds/2 {
		t.Errorf("only %d schemas were sent, with %d whole answers", sent, answers)
	}
	t.Logf("%d schemas, %d whole answers", sent, answers)
}

// Sorted by name, as newer servers do it, the keys still come in the order of the schema.
func TestRealServerKeepsOrderThroughSorting(t *testing.T) {
	m := newTiny(t)
	s, err := structure.Compile(json.RawMessage(`{"type":"object","required":["why","verdict","at"],"properties":{
		"why":{"type":"string","maxLength":8},"verdict":{"enum":["yes","no"]},
		"at":{"type":"object","required":["line","column"],"properties":{"line":{"type":"integer","minimum":1,"maximum":9},"column":{"type":"integer","minimum":1,"maximum":9}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	format, restore := s.Ordered()
	var unordered map[string]any // a Go map is written sorted by key, which is what such a server does
	if err := json.Unmarshal(format, &unordered); err != nil {
		t.Fatal(err)
	}
	resorted, err := json.Marshal(unordered)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range int64(5) {
		reply, err := m.ask(t.Context(), resorted, seed, 200)
		if err != nil {
			t.Fatal(err)
		}
		e := s.Extract(string(restore(json.RawMessage(reply.Text))), "", reply.DoneReason == "length")
		if e.Finding == structure.Cut {
			continue
		}
		var got struct {
			Why, Verdict json.RawMessage
			At           struct{ Line, Column json.RawMessage }
		}
		if err := json.Unmarshal(e.Value, &got); err != nil {
			t.Fatalf("seed %d: finding %d %v, %v of %q", seed, e.Finding, e.Reasons, err, reply.Text)
		}
		want := `{"why":` + string(got.Why) + `,"verdict":` + string(got.Verdict) + `,"at":{"line":` + string(got.At.Line) + `,"column":` + string(got.At.Column) + `}}`
		if string(e.Value) != want {
			t.Errorf("seed %d: %s, want the order %s", seed, e.Value, want)
		}
	}
}

// died says whether a call failed because of what was sent: an answer with an error, a connection that broke, no answer in
// time. A stream without end is none: the server stops after 31 equal tokens, which a tiny model may well write.
func died(err error) bool {
	var e *ollama.Error
	return err != nil && !(errors.As(err, &e) && e.Kind == ollama.StreamBroken)
}
