package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// resolved are a run's limits where its submission, which has those of its workflow, sets none: the default's. A negative one is none.
func resolved(set, standard run.Limits) run.Limits {
	pick := func(set, standard int64) int64 {
		if set == 0 {
			set = standard
		}
		return max(0, set)
	}
	l := run.Limits{
		ActiveSeconds: pick(set.ActiveSeconds, standard.ActiveSeconds), Scale: set.Scale, Tokens: pick(set.Tokens, standard.Tokens),
		Calls: pick(set.Calls, standard.Calls), ArtifactBytes: pick(set.ArtifactBytes, standard.ArtifactBytes),
		SpawnDepth: int(pick(int64(set.SpawnDepth), int64(standard.SpawnDepth))),
	}
	if l.Scale == (run.Scale{}) && set.ActiveSeconds == 0 {
		l.Scale = standard.Scale
	}
	return l
}

// setBy says who set each limit of a run: who is named for it, else the rest.
func setBy(l run.Limits, named map[string]string, rest string) map[string]string {
	all := map[string]string{}
	for name := range l.Set {
		all[name] = cmp.Or(named[name], rest)
	}
	return all
}

// lower are a parent's limits with those that a spawn asks for in place of larger ones.
func lower(parent run.Limits, asked json.RawMessage) (run.Limits, error) {
	if asked == nil {
		return parent, nil
	}
	var want struct {
		Active   int64 `json:"active_seconds"`
		Tokens   int64 `json:"tokens"`
		Calls    int64 `json:"calls"`
		Artifact int64 `json:"artifact_bytes"`
		Depth    int64 `json:"spawn_depth"`
	}
	dec := json.NewDecoder(bytes.NewReader(asked))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&want); err != nil {
		return parent, apierr.New(apierr.InvalidArgument, "spawn: the limits do not parse: %v", err).
			WithNext("use active_seconds, tokens, calls, artifact_bytes and spawn_depth, whole numbers")
	}
	least := func(have, want int64) int64 {
		if want > 0 && (have == 0 || want < have) {
			return want
		}
		return have
	}
	l := parent
	l.ActiveSeconds, l.Tokens, l.Calls = least(l.ActiveSeconds, want.Active), least(l.Tokens, want.Tokens), least(l.Calls, want.Calls)
	l.ArtifactBytes, l.SpawnDepth = least(l.ArtifactBytes, want.Artifact), int(least(int64(l.SpawnDepth), want.Depth))
	return l, nil
}

// pin stores a run's script and names it in the run's first event.
func (e *Engine) pin(ctx context.Context, c *run.Created, p script.Program) (err error) {
	if c.Script, err = e.keep(ctx, p.Name, p.Code); err != nil {
		return err
	}
	if len(p.SourceMap) > 0 {
		if c.SourceMap, err = e.keep(ctx, p.Name+".map", p.SourceMap); err != nil {
			return err
		}
	}
	c.Program = p.Name
	return nil
}

// refusedInput says what a workflow takes in place of what a spawn gave it.
func refusedInput(workflow string, err error) error {
	if ae := apierr.As(err); ae != nil && ae.Code == apierr.InvalidArgument {
		return apierr.New(apierr.InvalidArgument, "%s: %s", workflow, ae.Message).WithNext("loopkeeper run " + workflow + " --params")
	}
	return err
}

// checkInput checks a child's input against the parameters of its script, which are read once, and returns what it must cover.
func (e *Engine) checkInput(ctx context.Context, p script.Program, input json.RawMessage) ([]run.Submitted, error) {
	name := ledger.Digest(p.Code)
	known, ok := e.schemas.Load(name)
	if !ok {
		i, err := e.o.Host.Describe(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s does not load: %w", p.Name, err)
		}
		known = i.ParamsSchema
		e.schemas.Store(name, known)
	}
	schema, _ := known.(json.RawMessage)
	if schema == nil {
		return nil, nil
	}
	if err := params.Check(schema, input); err != nil || e.o.Submitted == nil {
		return nil, err
	}
	return e.o.Submitted(ctx, schema, input)
}
