package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// DescribeWorkflow implements the service.
func (s *Server) DescribeWorkflow(ctx context.Context, r *coordinatorv1.DescribeWorkflowRequest) (*coordinatorv1.DescribeWorkflowResponse, error) {
	p, err := program(r.GetBuiltIn(), r.GetBundle())
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	i, err := s.describe(ctx, p)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	return &coordinatorv1.DescribeWorkflowResponse{Name: p.Name, Description: i.Description, ParamsSchemaJson: i.ParamsSchema}, nil
}

// Submit implements the service: everything that can be known to fail fails here, before a run exists.
func (s *Server) Submit(ctx context.Context, r *coordinatorv1.SubmitRequest) (*coordinatorv1.SubmitResponse, error) {
	out, err := s.submit(ctx, r)
	return out, apierr.ToStatus(err)
}

func (s *Server) submit(ctx context.Context, r *coordinatorv1.SubmitRequest) (*coordinatorv1.SubmitResponse, error) {
	p, err := program(r.GetBuiltIn(), r.GetBundle())
	if err != nil {
		return nil, err
	}
	iface, err := s.describe(ctx, p)
	if err != nil {
		return nil, err
	}
	input, err := script.Canonical(orNull(r.GetInputJson()))
	if err != nil {
		return nil, apierr.New(apierr.InvalidArgument, "the input is not JSON: %v", err)
	}
	if err := checkInput(iface.ParamsSchema, input); err != nil {
		return nil, err
	}
	if err := s.checkRefs(ctx, input); err != nil {
		return nil, err
	}
	out := &coordinatorv1.SubmitResponse{}
	if err := s.admit(ctx, r.GetModels(), out); err != nil {
		return nil, err
	}
	if r.GetDryRun() {
		return out, nil
	}
	out.RunId, out.Existing, err = s.o.Engine.Submit(ctx, engine.Submission{Workflow: p.Name, Program: p, Input: input, Key: r.GetKey(),
		TimeLimit: time.Duration(r.GetTimeLimitSeconds()) * time.Second})
	return out, err
}

func orNull(b []byte) []byte {
	if len(b) == 0 {
		return []byte("{}")
	}
	return b
}

func program(builtIn string, b *coordinatorv1.Bundle) (script.Program, error) {
	if b != nil {
		return script.Program{Name: b.GetName(), Code: b.GetCode(), SourceMap: b.GetSourceMap()}, nil
	}
	p, ok := workflows.Lookup(builtIn)
	if !ok {
		return p, apierr.New(apierr.NotFound, "no built-in workflow is named %q; there are %s", builtIn, strings.Join(workflows.List(), ", "))
	}
	return p, nil
}

// describe loads the program once to learn its parameters; a program that does not load is the user's to repair.
func (s *Server) describe(ctx context.Context, p script.Program) (script.Interface, error) {
	i, err := s.o.Host.Describe(ctx, p)
	var f *script.Failure
	if errors.As(err, &f) {
		e := apierr.New(apierr.InvalidArgument, "%s does not load: %s", p.Name, f.Error())
		if f.Stack != "" {
			e = e.WithNext("repair " + strings.SplitN(strings.TrimSpace(f.Stack), "\n", 2)[0])
		}
		return i, e
	}
	return i, err
}

// admit checks every model that the run is known to need against the fleet.
func (s *Server) admit(ctx context.Context, models []string, out *coordinatorv1.SubmitResponse) error {
	snap, err := s.o.Engine.Snapshot(ctx)
	if err != nil {
		return err
	}
	for _, m := range models {
		ok, why := scheduler.Admit(snap, m, s.o.Contexts[m], s.o.Limits)
		out.Fits = append(out.Fits, &coordinatorv1.ModelFit{Model: m, Explanation: explanation(m, why)})
		switch {
		case !ok && why.Wait == scheduler.WaitModel:
			return apierr.New(apierr.NotFound, "%s", why.Summary).WithNext("ollama pull "+m+" on one of them", "loopkeeper nodes")
		case !ok:
			return cannotFit(why)
		case why.Wait != "":
			out.Notes = append(out.Notes, why.Summary)
		}
	}
	return nil
}

// cannotFit says for every machine what is needed, what there is, and how much is missing.
func cannotFit(why scheduler.Explanation) error {
	var b strings.Builder
	b.WriteString(why.Summary)
	for _, n := range why.Nodes {
		fmt.Fprintf(&b, "\n  %s: %s", n.Name, n.Why)
	}
	e := apierr.New(apierr.CannotFit, "%s", b.String())
	for _, n := range why.Nodes {
		if n.Largest > 0 {
			return e.WithNext(fmt.Sprintf("set models.contexts to at most %d tokens for this model", n.Largest), "choose a smaller model")
		}
	}
	return e.WithNext("choose a smaller model or a smaller quantisation")
}

// checkRefs makes sure that every body the input names is here.
func (s *Server) checkRefs(ctx context.Context, input json.RawMessage) error {
	var v any
	if err := json.Unmarshal(input, &v); err != nil {
		return apierr.Wrap(err, apierr.InvalidArgument, "read the input")
	}
	return eachRef(v, func(sha, name string) error {
		ok, err := s.o.Store.HasArtifact(ctx, sha)
		if err == nil && !ok {
			err = apierr.New(apierr.NotFound, "the input names %s (%.12s…), which was not uploaded", name, sha)
		}
		return err
	})
}

func eachRef(v any, visit func(sha, name string) error) error {
	switch v := v.(type) {
	case map[string]any:
		if sha, ok := v["ref"].(string); ok && len(sha) == 64 {
			name, _ := v["name"].(string)
			return visit(sha, name)
		}
		for _, x := range v {
			if err := eachRef(x, visit); err != nil {
				return err
			}
		}
	case []any:
		for _, x := range v {
			if err := eachRef(x, visit); err != nil {
				return err
			}
		}
	}
	return nil
}
