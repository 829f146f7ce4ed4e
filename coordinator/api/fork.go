package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// ForkRun implements the service: as with Submit, what can be known to fail fails before a run exists.
func (s *Server) ForkRun(ctx context.Context, r *coordinatorv1.ForkRunRequest) (*coordinatorv1.ForkRunResponse, error) {
	out, err := s.fork(ctx, r)
	return out, apierr.ToStatus(err)
}

func (s *Server) fork(ctx context.Context, r *coordinatorv1.ForkRunRequest) (*coordinatorv1.ForkRunResponse, error) {
	base, p, err := s.pinned(ctx, r.GetRunId())
	if err != nil {
		return nil, err
	}
	v, err := s.o.Engine.Run(ctx, base.ID)
	if err != nil {
		return nil, err
	}
	f := engine.ForkRequest{Run: base.ID, Failed: r.GetFailed(), Models: r.GetModels(), Key: r.GetKey()}
	if f.Before, err = before(v, r.GetFrom()); err != nil {
		return nil, err
	}
	if f.Limits, f.SetBy, err = asked(r); err != nil {
		return nil, err
	}
	out := &coordinatorv1.ForkRunResponse{}
	if err = s.forkInput(ctx, base, p, r.GetSetJson(), &f); err != nil {
		return nil, err
	}
	if err := s.checkModels(ctx, v, r.GetModels(), out); err != nil {
		return nil, err
	}
	is, err := s.o.Engine.CheckFork(ctx, f)
	if err != nil {
		return nil, err
	}
	if out.Steps = int32(is.Steps); f.Failed && !is.Retry.Helps && f.Input == nil && len(f.Models)+len(f.SetBy) == 0 {
		out.Notes = append(out.Notes, is.Retry.Why)
	}
	if r.GetDryRun() {
		return out, nil
	}
	out.RunId, out.Existing, err = s.o.Engine.Fork(ctx, f)
	return out, err
}

// pinned reads what a run began with, and its script.
func (s *Server) pinned(ctx context.Context, id string) (c run.Created, p script.Program, err error) {
	if c, err = s.o.Engine.Pinned(ctx, id); err != nil {
		return c, p, err
	}
	p.Name = c.Program
	if p.Code, err = s.body(ctx, c.Script); err == nil && c.SourceMap != "" {
		p.SourceMap, err = s.body(ctx, c.SourceMap)
	}
	return c, p, err
}

// body opens an artifact whole.
func (s *Server) body(ctx context.Context, sha string) ([]byte, error) {
	f, _, err := s.o.Store.OpenArtifact(ctx, sha)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	return io.ReadAll(f)
}

// before is the position from which on a fork does everything anew, 0 for one that takes over whatever is asked for as before.
func before(v engine.View, from string) (int, error) {
	if from == "" {
		return 0, nil
	}
	step, err := position(from)
	switch {
	case err != nil:
		return 0, err
	case step == 0:
		return 0, apierr.New(apierr.InvalidArgument, "a fork from step 0 of run %s takes nothing over: that is a new run", v.ID).WithNext("loopkeeper run")
	case step >= len(v.Steps):
		return 0, apierr.New(apierr.NotFound, "run %s has no step %d", v.ID, step).WithNext("loopkeeper show " + v.ID)
	}
	return step, nil
}

// forkInput gives a fork its input, the base's with parameters replaced, and what must be covered of it. Where none are it is the base's.
func (s *Server) forkInput(ctx context.Context, base run.Created, p script.Program, set []byte, f *engine.ForkRequest) error {
	if len(set) == 0 {
		return nil
	}
	var replaced, all map[string]json.RawMessage
	if err := json.Unmarshal(set, &replaced); err != nil {
		return apierr.New(apierr.InvalidArgument, "what is set is no JSON object: %v", err)
	}
	if err := json.Unmarshal(base.Input, &all); err != nil || all == nil {
		return apierr.New(apierr.InvalidArgument, "the input of run %s is no object: none of its parts can be replaced", base.ID)
	}
	maps.Copy(all, replaced)
	raw, err := json.Marshal(all)
	if err != nil {
		return apierr.Wrap(err, apierr.Internal, "put the input together")
	}
	input, err := script.Canonical(raw)
	if err != nil {
		return apierr.New(apierr.InvalidArgument, "the input is refused: %v", err)
	}
	i, err := s.describe(ctx, p)
	if err == nil {
		err = params.Check(i.ParamsSchema, input)
	}
	if err == nil {
		err = s.checkRefs(ctx, input, false)
	}
	if err != nil || bytes.Equal(input, base.Input) {
		return err
	}
	f.Input = input
	f.Submitted, err = Submitted(ctx, s.o.Store, i.ParamsSchema, input)
	return err
}

// checkModels makes sure that every model that is replaced was asked for, and that the new one fits.
func (s *Server) checkModels(ctx context.Context, v engine.View, models map[string]string, out *coordinatorv1.ForkRunResponse) error {
	asked := map[string]bool{}
	for _, st := range v.Steps {
		for _, model := range st.Models {
			asked[model] = true
		}
	}
	var to []string
	for _, old := range slices.Sorted(maps.Keys(models)) {
		if len(asked) > 0 && !asked[old] {
			return apierr.New(apierr.InvalidArgument, "run %s never asked for the model %s; it asked for %s", v.ID, old, strings.Join(sortedKeys(asked), ", ")).
				WithNext("loopkeeper show " + v.ID)
		}
		to = append(to, models[old])
	}
	var fits coordinatorv1.SubmitResponse
	err := s.admit(ctx, to, false, &fits)
	out.Notes = append(out.Notes, fits.GetNotes()...)
	return err
}
