package modes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// Prompt is what a probe says. It does not tell the numbers: only the format does.
const Prompt = "Fill in the form. Write nothing else and no spaces."

// Target is the model that is asked about.
type Target struct {
	Name   string
	Digest string
	NumCtx int  // tokens; that of the call, since another one loads the model again
	Levels bool // it takes levels of thinking only
}

// Ask sends one request over an endpoint, Generate or Chat.
type Ask func(ctx context.Context, endpoint string, r ollama.Request) (ollama.Reply, error)

// nonces are two numbers of three digits, so that an answer stays within the budget.
type nonces struct{ first, second int }

func newNonces() nonces {
	n := nonces{first: 100 + rand.IntN(900), second: 100 + rand.IntN(900)}
	if n.second == n.first {
		n.second = 100 + (n.second-100+1)%900
	}
	return n
}

// format asks for the nonces under names that are not in alphabetical order.
func (n nonces) format() json.RawMessage {
	return fmt.Appendf(nil, `{"type":"object","properties":{"b":{"const":%d},"a":{"const":%d}},"required":["b","a"]}`, n.first, n.second)
}

// probe tries the candidates until one passes. An error says that it could not be found out; a model with which no way
// passes is a Mode with None, which is no error.
func probe(ctx context.Context, t Target, ask Ask) (Mode, error) {
	var broken error
	for _, w := range candidates(t.Levels) {
		n := newNonces()
		reply, err := ask(ctx, w.endpoint, t.request(w, n))
		switch {
		case err == nil:
			if field, ordered, ok := n.arrived(reply); ok {
				return Mode{Endpoint: w.endpoint, Think: w.think, Field: field, Ordered: ordered}, nil
			}
		case ctx.Err() != nil || !conclusive(err):
			return Mode{}, err
		case ollama.KindOf(err) == ollama.ServerError:
			broken = err // perhaps of this way alone: a template that cannot do without thoughts
		}
	}
	if broken != nil {
		return Mode{}, broken
	}
	m := Assumed()
	m.None = true
	return m, nil
}

// conclusive says whether an error is about this way of calling: the others would fail like that on every way.
func conclusive(err error) bool {
	switch ollama.KindOf(err) {
	case ollama.BadRequest, ollama.ServerError:
		return true
	default:
		return false
	}
}

func (t Target) request(w way, n nonces) ollama.Request {
	zero, one := 0.0, 1.0
	return ollama.Request{
		Model: t.Name, Prompt: Prompt, Format: n.format(), Think: w.think,
		Sampling: ollama.Sampling{NumCtx: t.NumCtx, NumPredict: w.budget, Temperature: &zero, RepeatPenalty: &one},
	}
}

// arrived says where the nonces came, and whether in order. An answer counts only when it ended by itself and holds the
// two numbers and nothing else.
func (n nonces) arrived(r ollama.Reply) (field string, ordered, ok bool) {
	if r.DoneReason != "stop" {
		return "", false, false
	}
	field, text := Content, strings.TrimSpace(r.Text)
	if text == "" {
		field, text = Thinking, strings.TrimSpace(r.Thinking)
	}
	var got struct {
		B *int `json:"b"`
		A *int `json:"a"`
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil || got.A == nil || got.B == nil || *got.B != n.first || *got.A != n.second {
		return "", false, false
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", false, false
	}
	return field, strings.Index(text, `"b"`) < strings.Index(text, `"a"`), true
}
