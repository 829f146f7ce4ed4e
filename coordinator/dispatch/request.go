package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/run/panel"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// call is a step's request, see docs/requests.md, as far as workers need it.
type call struct {
	Prompt      string            `json:"prompt"`
	System      string            `json:"system"`
	Context     []json.RawMessage `json:"context"`
	Schema      json.RawMessage   `json:"schema"`
	Options     json.RawMessage   `json:"options"`
	Think       json.RawMessage   `json:"think"`
	MaxTokens   int32             `json:"max_tokens"`
	Temperature *float64          `json:"temperature"`
	Goal        string            `json:"goal"`
	MaxSteps    int32             `json:"max_steps"`
	Parts       []string          `json:"parts"`
	Workers     []planWorker      `json:"workers"`
	Lists       []planList        `json:"lists"`
	Facts       []string          `json:"facts"`
	Leads       []string          `json:"leads"`
	Criteria    []panel.Criterion `json:"criteria"`
	Sources     []json.RawMessage `json:"sources"`
	Images      []json.RawMessage `json:"images"`
	Inputs      []json.RawMessage `json:"inputs"` // of an embed bodies, of a plan names
}

type planWorker struct {
	Name         string `json:"name"`
	About        string `json:"about"`
	Irreversible bool   `json:"irreversible"`
	Asks         bool   `json:"asks"`
}

type planList struct {
	Name  string `json:"name"`
	Count int32  `json:"count"`
	About string `json:"about"`
}

func parseCall(a engine.Attempt) (*call, error) {
	c := &call{}
	if err := json.Unmarshal(a.Request, c); err != nil {
		return nil, apierr.Wrap(err, apierr.Internal, "read the request of step %d", a.Step)
	}
	return c, nil
}

// size is how much text a call has beside its bodies, bytes.
func (c *call) size(a engine.Attempt) int64 {
	n := len(c.Prompt) + len(c.System) + len(c.Goal) + len(c.Schema) + len(c.Options) + len(a.Rejected)
	for _, texts := range [][]string{a.Feedback, c.Parts, c.Facts, c.Leads} {
		for _, t := range texts {
			n += len(t)
		}
	}
	for _, k := range c.Criteria {
		n += len(k.Text)
	}
	return int64(n)
}

// request is a call with its bodies, ready to be sent.
type request struct {
	engine.Attempt
	*call
	shared []*workerv1.Body
	item   *workerv1.Body
	texts  []*workerv1.Body // the prompts that the run has pinned
	images []*workerv1.Body
}

// outcome asks the worker. Its errors are those of gRPC.
func (d *Dispatcher) outcome(ctx context.Context, client workerv1.WorkerServiceClient, r request) (*workerv1.Outcome, error) {
	switch r.Kind {
	case engine.CallPlan:
		out, err := client.Plan(ctx, r.plan(d.model(r.Attempt)))
		return out.GetOutcome(), err
	case engine.CallEvaluate:
		out, err := client.Evaluate(ctx, r.evaluate(d.model(r.Attempt)))
		return out.GetOutcome(), err
	case engine.CallEmbed:
		out, err := client.Embed(ctx, &workerv1.EmbedRequest{Call: r.header(), Model: d.model(r.Attempt), Inputs: r.shared})
		return out.GetOutcome(), err
	default:
		return d.generate(ctx, client, r)
	}
}

// plan always has parts: of a goal that nobody has split it is the only one.
func (r request) plan(m *workerv1.ModelSpec) *workerv1.PlanRequest {
	p := &workerv1.PlanRequest{Call: r.header(), Model: m, Sampling: r.sampling(), System: r.System, Goal: r.Goal, Context: r.shared, MaxSteps: r.MaxSteps,
		Parts: r.Parts, Facts: r.Facts, Leads: r.Leads, Feedback: r.Feedback, RejectedJson: r.Rejected}
	if len(p.Parts) == 0 {
		p.Parts = []string{r.Goal}
	}
	for _, w := range r.Workers {
		p.Workers = append(p.Workers, &workerv1.PlanWorker{Name: w.Name, About: w.About, Irreversible: w.Irreversible, Asks: w.Asks})
	}
	for _, l := range r.Lists {
		p.Lists = append(p.Lists, &workerv1.PlanList{Name: l.Name, Count: l.Count, About: l.About})
	}
	for _, raw := range r.Inputs {
		var name string
		if json.Unmarshal(raw, &name) == nil {
			p.Inputs = append(p.Inputs, name)
		}
	}
	return p
}

func (r request) evaluate(m *workerv1.ModelSpec) *workerv1.EvaluateRequest {
	e := &workerv1.EvaluateRequest{Call: r.header(), Model: m, Sampling: r.sampling(), System: r.System, Subject: r.item, Sources: r.shared, Goal: r.Goal,
		Reversed: r.Reversed}
	for _, k := range r.Criteria {
		e.Questions = append(e.Questions, &workerv1.Criterion{Text: k.Text, Absence: k.Absence})
	}
	return e
}

// generate follows the stream: progress is passed on, the outcome ends it.
func (d *Dispatcher) generate(ctx context.Context, client workerv1.WorkerServiceClient, r request) (*workerv1.Outcome, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the stream, whose last message is not its end
	defer cancel()
	stream, err := client.Generate(ctx, &workerv1.GenerateRequest{Call: r.header(), Model: d.model(r.Attempt), Sampling: r.sampling(), System: r.System,
		Context: r.shared, Prompt: r.Prompt, Item: r.item, SchemaJson: r.Schema, Feedback: r.Feedback, Images: r.images})
	if err != nil {
		return nil, err
	}
	for {
		msg, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if p := msg.GetProgress(); p != nil {
			d.o.Sink.Progressed(engine.Progress{Key: r.Key, Tokens: tokens(p.GetTokens()), TokensPerSecond: rate(p.GetTokensPerSecond()), Phase: brief(p.GetPhase())})
		}
		if o := msg.GetOutcome(); o != nil {
			return o, nil
		}
	}
}

func (r request) header() *workerv1.Call {
	return &workerv1.Call{RunId: r.RunID, StepId: fmt.Sprint(r.Step), Item: int32(r.Item), Attempt: int32(r.Try), Key: r.Key,
		DeadlineSeconds: int64((r.Deadline + time.Second - 1) / time.Second), Prompts: r.texts}
}

// model says what is known of how to call it there. What is in doubt is not said: the worker finds out anew.
func (d *Dispatcher) model(a engine.Attempt) *workerv1.ModelSpec {
	m := &workerv1.ModelSpec{Name: a.Model, Digest: a.Digest, Context: int32(a.Context)}
	if !a.Probe {
		m.Mode = d.o.Nodes.Mode(a.Node, a.Digest)
	}
	return m
}

// sampling of a call that gets more room has no thoughts: they ate the answer before.
func (r request) sampling() *workerv1.Sampling {
	s := &workerv1.Sampling{MaxTokens: r.MaxTokens, Temperature: r.Temperature, Seed: r.Seed, OptionsJson: r.Options, Room: r.Room}
	var think any
	if json.Unmarshal(r.Think, &think) == nil && think != nil {
		s.Think = fmt.Sprint(think) // true, false or a level
	}
	if r.Room {
		s.Think = "false"
	}
	return s
}

// families says which of the pinned texts a call is made with, by the beginning of their names.
var families = map[engine.CallKind][]string{
	engine.CallGenerate: {"generate_", "schema_"},
	engine.CallPlan:     {"plan_", "generate_"},
	engine.CallEvaluate: {"check_"},
}

// prompts are the texts that the run has pinned for such a call. One that the node was sent before is not opened again. Their size is
// never said, so that a call looks the same each time it is sent.
func (d *Dispatcher) prompts(ctx context.Context, a engine.Attempt, byValue bool) ([]*workerv1.Body, error) {
	var out []*workerv1.Body
	for _, name := range slices.Sorted(maps.Keys(a.Prompts)) {
		if !slices.ContainsFunc(families[a.Kind], func(begin string) bool { return strings.HasPrefix(name, begin) }) {
			continue
		}
		b := &workerv1.Body{Sha256: a.Prompts[name], Name: name}
		if byValue || !d.sent.has(a.Node, b.Sha256) {
			whole, err := d.open(ctx, ref{Ref: b.Sha256, Name: name})
			if err != nil {
				return nil, err
			}
			b.Text = whole.Text
		}
		out = append(out, b)
	}
	return out, nil
}
