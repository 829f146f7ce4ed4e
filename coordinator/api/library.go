package api

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Library keeps workflows by name.
type Library interface {
	// Find returns the workflow that a name, or what Pin returned, stands for now. NotFound: it stands for none.
	Find(ctx context.Context, name string) (script.Program, error)
	// Added returns the workflows that were added, by name.
	Added(ctx context.Context) ([]Added, error)
	// Add keeps p under a.Name and fills in the rest of a. One of that name with another script is a Conflict unless replace is set.
	Add(ctx context.Context, a Added, p script.Program, replace bool) (kept Added, replaced bool, err error)
	// Remove forgets a name. NotFound.
	Remove(ctx context.Context, name string) error
	// Pin keeps p and returns what stands for exactly it from now on.
	Pin(ctx context.Context, p script.Program) (string, error)
}

// Added is a workflow that was added.
type Added struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Params      json.RawMessage `json:"params,omitempty"` // JSON Schema; nil for any input
	Time        time.Time       `json:"time"`
	Pinned      string          `json:"pinned"` // the script, as Pin names it
	Script      string          `json:"script"` // SHA-256 of its code
}

var workflowName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// program is the workflow that a request names or carries. builtIn says that it is one of loopkeeper's own.
func (s *Server) program(ctx context.Context, name string, b *coordinatorv1.Bundle) (p script.Program, builtIn bool, err error) {
	if b == nil {
		p, err = s.o.Library.Find(ctx, name)
		own, ok := workflows.Lookup(name)
		return p, ok && string(own.Code) == string(p.Code), err
	}
	if len(b.GetCode()) == 0 {
		return p, false, apierr.New(apierr.InvalidArgument, "the script %q is empty", b.GetName()).WithNext("write its default export: export default async function flow(input) { … }")
	}
	return script.Program{Name: b.GetName(), Code: b.GetCode(), SourceMap: b.GetSourceMap()}, false, nil
}

// ListWorkflows implements the service.
func (s *Server) ListWorkflows(ctx context.Context, _ *coordinatorv1.ListWorkflowsRequest) (*coordinatorv1.ListWorkflowsResponse, error) {
	added, err := s.o.Library.Added(ctx)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out := &coordinatorv1.ListWorkflowsResponse{}
	hidden := map[string]bool{} // a later loopkeeper may build in what a user has named before: the user's goes first
	for _, a := range added {
		hidden[a.Name] = true
	}
	for _, name := range workflows.List() {
		if hidden[name] {
			continue
		}
		p, _ := workflows.Lookup(name)
		i, err := s.describe(ctx, p)
		if err != nil {
			return nil, apierr.ToStatus(err)
		}
		out.Workflows = append(out.Workflows, &coordinatorv1.Workflow{Name: name, Description: i.Description, BuiltIn: true, ParamsSchemaJson: i.ParamsSchema})
	}
	for _, a := range added {
		out.Workflows = append(out.Workflows, workflowMessage(a))
	}
	return out, nil
}

func workflowMessage(a Added) *coordinatorv1.Workflow {
	return &coordinatorv1.Workflow{Name: a.Name, Description: a.Description, ParamsSchemaJson: a.Params, ScriptSha256: a.Script, Added: stamp(a.Time)}
}

// AddWorkflow implements the service.
func (s *Server) AddWorkflow(ctx context.Context, r *coordinatorv1.AddWorkflowRequest) (*coordinatorv1.AddWorkflowResponse, error) {
	out, err := s.addWorkflow(ctx, r)
	return out, apierr.ToStatus(err)
}

func (s *Server) addWorkflow(ctx context.Context, r *coordinatorv1.AddWorkflowRequest) (*coordinatorv1.AddWorkflowResponse, error) {
	if r.GetBundle() == nil {
		return nil, apierr.New(apierr.InvalidArgument, "there is no script to add").WithNext("loopkeeper workflows add FILE")
	}
	name := r.GetName()
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(r.GetBundle().GetName()), filepath.Ext(r.GetBundle().GetName()))
	}
	if !workflowName.MatchString(name) {
		return nil, apierr.New(apierr.InvalidArgument, "%q is no name of a workflow", name).WithNext("--name with a-z, 0-9, dash and underscore, at most 63, such as --name review")
	}
	if _, ok := workflows.Lookup(name); ok {
		return nil, apierr.New(apierr.InvalidArgument, "%s is built in, and its name is not free", name).WithNext("choose another --name")
	}
	p, _, err := s.program(ctx, "", r.GetBundle())
	if err != nil {
		return nil, err
	}
	i, err := s.describe(ctx, p)
	if err != nil {
		return nil, err
	}
	if i.ParamsSchema != nil {
		if err := params.Declared(i.ParamsSchema); err != nil {
			return nil, err
		}
	}
	kept, replaced, err := s.o.Library.Add(ctx, Added{Name: name, Description: i.Description, Params: i.ParamsSchema}, p, r.GetReplace())
	if err != nil {
		return nil, err
	}
	return &coordinatorv1.AddWorkflowResponse{Workflow: workflowMessage(kept), Replaced: replaced}, nil
}

// RemoveWorkflow implements the service.
func (s *Server) RemoveWorkflow(ctx context.Context, r *coordinatorv1.RemoveWorkflowRequest) (*coordinatorv1.RemoveWorkflowResponse, error) {
	err := s.o.Library.Remove(ctx, r.GetName())
	if _, builtIn := workflows.Lookup(r.GetName()); builtIn && apierr.CodeOf(err) == apierr.NotFound {
		err = apierr.New(apierr.InvalidArgument, "%s is built in, and stays", r.GetName()).
			WithNext("loopkeeper workflows  # those that were added can be removed", "loopkeeper workflows show "+r.GetName())
	}
	return &coordinatorv1.RemoveWorkflowResponse{}, apierr.ToStatus(err)
}
