package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/tools"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// newTools opens the workspaces and registers the tools of this machine.
func (o Options) newTools() (*tools.Registry, error) {
	to := tools.Options{Workspaces: o.Spaces, Bodies: bodies{o.Store}, Records: records{o.Store}}
	if len(o.Web) > 0 {
		to.More = append(to.More, tools.Web{Hosts: o.Web, Bodies: to.Bodies})
	}
	if o.EffectLog != nil {
		to.More = append(to.More, *o.EffectLog)
	}
	r, err := tools.New(to)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "make the tools ready")
	}
	return r, nil
}

// toolbox lets the engine use tools in its own words: neither package knows the other.
type toolbox struct{ *tools.Registry }

// Effect implements engine.Tools.
func (b toolbox) Effect(tool string) (engine.ToolEffect, bool) {
	for _, d := range b.Tools() {
		if d.Name == tool {
			return engine.ToolEffect(d.Effect), true
		}
	}
	return "", false
}

// Run implements engine.Tools.
func (b toolbox) Run(ctx context.Context, c engine.ToolCall) (engine.ToolOutcome, error) {
	out, err := b.Registry.Run(ctx, tools.Call(c))
	if err != nil {
		return engine.ToolOutcome{}, err
	}
	return outcomeOf(out)
}

// Check implements engine.Tools.
func (b toolbox) Check(ctx context.Context, c engine.ToolCall) (engine.ToolChecked, error) {
	checked, err := b.Registry.Check(ctx, tools.Call(c))
	if err != nil {
		return engine.ToolChecked{}, err
	}
	out := engine.ToolChecked{State: engine.ToolState(checked.State), Why: checked.Why}
	if checked.Outcome != nil {
		o, err := outcomeOf(*checked.Outcome)
		if err != nil {
			return engine.ToolChecked{}, err
		}
		out.Outcome = &o
	}
	return out, nil
}

func outcomeOf(o tools.Outcome) (out engine.ToolOutcome, err error) {
	out = engine.ToolOutcome{Value: o.Value, Failure: failureOf(o.Failure)}
	if out.Before, err = factsOf(o.Before); err == nil {
		out.After, err = factsOf(o.After)
	}
	return out, err
}

func factsOf(all []tools.Evidence) (json.RawMessage, error) {
	if len(all) == 0 {
		return nil, nil
	}
	return json.Marshal(all)
}

func failureOf(f *tools.Failure) *engine.Failure {
	if f == nil {
		return nil
	}
	out := &engine.Failure{Kind: f.Kind, Message: f.Message, Advice: run.Never, Next: f.Next}
	switch {
	case f.Kind == tools.EffectUnsure:
		out.Kind = run.KindUnknown
	case f.Again:
		out.Advice = run.Again
	}
	return out
}

// bodies is the artifact store as tools use it.
type bodies struct{ store ledger.Store }

// Open implements tools.Bodies.
func (b bodies) Open(ctx context.Context, sha256 string) (io.ReadCloser, int64, error) {
	r, a, err := b.store.OpenArtifact(ctx, sha256)
	return r, a.Size, err
}

// Put implements tools.Bodies.
func (b bodies) Put(ctx context.Context, name string, body io.Reader) (tools.Ref, error) {
	a, err := b.store.PutArtifact(ctx, name, body)
	return tools.Ref{SHA256: a.SHA256, Name: name, Bytes: a.Size}, err
}

// records keeps in the ledger what calls with an effect did.
type records struct{ store ledger.Store }

// Record implements tools.Records.
func (r records) Record(ctx context.Context, key string) (tools.Record, bool, error) {
	kept, found, err := r.store.ToolCall(ctx, key)
	if err != nil || !found {
		return tools.Record{}, false, err
	}
	var out tools.Record
	if err := json.Unmarshal(kept.Value, &out); err != nil {
		return tools.Record{}, false, apierr.Wrap(err, apierr.LedgerCorrupt, "read what is kept of the call %s", key)
	}
	return out, true, nil
}

// SaveRecord implements tools.Records.
func (r records) SaveRecord(ctx context.Context, record tools.Record) error {
	value, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("write what is kept of the call %s: %w", record.Key, err)
	}
	return r.store.Append(ctx, ledger.Commit{ToolCalls: []ledger.ToolCall{{Key: record.Key, Updated: time.Now().UTC(), Value: value}}})
}
