package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/dispatch"
	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// DescribeWorkflow implements the service.
func (s *Server) DescribeWorkflow(ctx context.Context, r *coordinatorv1.DescribeWorkflowRequest) (*coordinatorv1.DescribeWorkflowResponse, error) {
	p, err := s.described(ctx, r)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	i, err := s.describe(ctx, p)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	return &coordinatorv1.DescribeWorkflowResponse{Name: p.Name, Description: i.Description, ParamsSchemaJson: i.ParamsSchema}, nil
}

// described finds the program that is to be described.
func (s *Server) described(ctx context.Context, r *coordinatorv1.DescribeWorkflowRequest) (p script.Program, err error) {
	if r.GetRunId() != "" {
		_, p, err = s.pinned(ctx, r.GetRunId())
		return p, err
	}
	p, _, err = s.program(ctx, r.GetBuiltIn(), r.GetBundle())
	return p, err
}

// Submit implements the service: everything that can be known to fail fails here, before a run exists.
func (s *Server) Submit(ctx context.Context, r *coordinatorv1.SubmitRequest) (*coordinatorv1.SubmitResponse, error) {
	out, err := s.submit(ctx, r)
	return out, apierr.ToStatus(err)
}

func (s *Server) submit(ctx context.Context, r *coordinatorv1.SubmitRequest) (*coordinatorv1.SubmitResponse, error) {
	p, builtIn, err := s.program(ctx, r.GetBuiltIn(), r.GetBundle())
	if err != nil {
		return nil, err
	}
	input, err := script.Canonical(orNull(r.GetInputJson()))
	if err != nil {
		return nil, apierr.New(apierr.InvalidArgument, "the input is refused: %v", err).WithNext("loopkeeper run WORKFLOW --params  # shows what it takes")
	}
	job := engine.Submission{Workflow: p.Name, BuiltIn: builtIn, Program: p, Input: input, Key: r.GetKey()}
	if job.Priority, job.Weight, err = precedence(r); err != nil {
		return nil, err
	}
	if !r.GetDryRun() {
		if id, err := s.known(ctx, job); err != nil || id != "" {
			return &coordinatorv1.SubmitResponse{RunId: id, Existing: id != ""}, err
		}
	}
	if job.Limits, job.SetBy, err = s.budgets(r, job.Workflow); err != nil {
		return nil, err
	}
	iface, err := s.describe(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := params.Check(iface.ParamsSchema, input); err != nil {
		return nil, err
	}
	if err := s.checkRefs(ctx, input, builtIn); err != nil {
		return nil, err
	}
	if job.Submitted, err = Submitted(ctx, s.o.Store, iface.ParamsSchema, input); err != nil {
		return nil, err
	}
	out := &coordinatorv1.SubmitResponse{}
	if err := s.admit(ctx, r.GetModels(), builtIn, out); err != nil {
		return nil, err
	}
	if r.GetDryRun() {
		return out, nil
	}
	out.RunId, out.Existing, err = s.o.Engine.Submit(ctx, job)
	if err == nil && out.Existing { // the same key was sent twice at once
		err = s.sameJob(ctx, out.RunId, job)
	}
	return out, err
}

// precedence reads which runs this one goes before.
func precedence(r *coordinatorv1.SubmitRequest) (run.Priority, float64, error) {
	p := run.Priority(r.GetPriority())
	switch p {
	case "", run.Interactive, run.Normal, run.Batch:
	default:
		return "", 0, apierr.New(apierr.InvalidArgument, "there is no priority %q", p).WithNext("use interactive, normal or batch")
	}
	if w := r.GetWeight(); !(w >= 0 && w <= 1000) { // NaN too
		return "", 0, apierr.New(apierr.InvalidArgument, "a weight of %g makes no sense", w).WithNext("use a number such as 2 for twice the share of another run, or leave it out")
	}
	return p, r.GetWeight(), nil
}

// timeLimit reads a number of seconds, of which a century is more than anyone means.
func timeLimit(seconds int64) (time.Duration, error) {
	if seconds < 0 || seconds > 100*365*24*3600 {
		return 0, apierr.New(apierr.InvalidArgument, "a time limit of %d seconds makes no sense", seconds).WithNext("leave it out for no limit")
	}
	return time.Duration(seconds) * time.Second, nil
}

func orNull(b []byte) []byte {
	if len(b) == 0 {
		return []byte("{}")
	}
	return b
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

// admit checks every model that the run is known to need, or one at least of a role, against the fleet. asks says that each is to answer prompts, as those of the
// built-in workflows are; what a script does with one is its own affair.
func (s *Server) admit(ctx context.Context, models []string, asks bool, out *coordinatorv1.SubmitResponse) error {
	snap, err := s.o.Engine.Snapshot(ctx)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, m := range models {
		if seen[m] {
			continue
		}
		seen[m] = true
		if m == "" {
			return apierr.New(apierr.InvalidArgument, "a model has no name").WithNext("loopkeeper nodes  # lists the models of every machine")
		}
		admit := s.admitModel
		if len(s.o.Roles[m]) > 0 {
			admit = s.admitRole
		}
		if err := admit(snap, m, asks, out); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) admitModel(snap scheduler.Snapshot, m string, asks bool, out *coordinatorv1.SubmitResponse) error {
	embeds := onlyEmbeds(snap, m)
	if embeds && asks {
		return apierr.New(apierr.InvalidArgument, "%s only makes embeddings: it answers no prompt", m).
			WithNext("choose a model that writes text; loopkeeper models shows which there are")
	} else if embeds {
		out.Notes = append(out.Notes, m+" only makes embeddings: calls that ask it for text fail")
	}
	ok, why := scheduler.Admit(snap, m, s.o.Context(snap, m), s.o.Limits)
	out.Fits = append(out.Fits, &coordinatorv1.ModelFit{Model: m, Explanation: explanation(m, why)})
	switch {
	case !ok && why.Wait == scheduler.WaitModel:
		return apierr.New(apierr.NotFound, "%s%s", why.Summary, s.rolesInstead(m)).WithNext(pullCommand(m, why), "loopkeeper nodes")
	case !ok:
		return cannotFit(why)
	case why.Wait != "":
		out.Notes = append(out.Notes, why.Summary)
	}
	return nil
}

// rolesInstead says which roles there are, to somebody who may have meant one: a model's name has a tag as a rule.
func (s *Server) rolesInstead(model string) string {
	if len(s.o.Roles) == 0 || strings.Contains(model, ":") {
		return ""
	}
	return fmt.Sprintf("; roles are %s", strings.Join(sortedKeys(s.o.Roles), ", "))
}

// onlyEmbeds reports whether a model is one for embeddings wherever it is.
func onlyEmbeds(snap scheduler.Snapshot, name string) bool {
	other := func(m scheduler.Model) bool { return ollamaName(m.Name) == ollamaName(name) && !m.Embedding }
	return has(snap, name) && !slices.ContainsFunc(snap.Nodes, func(n scheduler.Node) bool { return slices.ContainsFunc(n.Models, other) })
}

// pullCommand has the first machine that could hold a model download it.
func pullCommand(model string, why scheduler.Explanation) string {
	i := slices.IndexFunc(why.Nodes, func(n scheduler.NodeVerdict) bool { return n.Verdict == scheduler.VerdictNoModel })
	if i < 0 {
		return "loopkeeper models pull " + model + " --everywhere"
	}
	return "loopkeeper models pull " + model + " --on " + nodeWord(why.Nodes[i].Name, why.Nodes[i].Node)
}

// cannotFit refuses a model that fits nowhere; the summary says for every machine what is needed, what there is, and how
// much is missing.
func cannotFit(why scheduler.Explanation) error {
	e := apierr.New(apierr.CannotFit, "%s", why.Summary)
	largest := 0
	for _, n := range why.Nodes {
		largest = max(largest, n.Largest)
	}
	if largest > 0 {
		return e.WithNext(fmt.Sprintf("set models.contexts to at most %d tokens for this model", largest), "choose a smaller model")
	}
	return e.WithNext("choose a smaller model or a smaller quantisation")
}

// mostMissing is how many texts that are not here are named.
const mostMissing = 5

// checkRefs makes sure that every body the input names is here, and when they are sent as they are, as the built-in workflows do,
// that a call can carry each; a script may read and split one. MissingArtifact lists the hashes that are not here.
func (s *Server) checkRefs(ctx context.Context, input json.RawMessage, sent bool) error {
	var v any
	if err := json.Unmarshal(input, &v); err != nil {
		return apierr.Wrap(err, apierr.InvalidArgument, "read the input")
	}
	var at, missing []string
	for _, r := range params.Refs(v) {
		has, err := s.o.Store.HasArtifact(ctx, r.SHA256)
		if err != nil {
			return err
		}
		if has && sent && !strings.HasSuffix(r.At, "/lines") && (r.Bytes < 0 || r.Bytes > dispatch.BodyLimit) {
			if err := s.checkSize(ctx, r); err != nil {
				return err
			}
		}
		if !has {
			at, missing = append(at, fmt.Sprintf("%s %s (%.12s…)", r.At, r.Name, r.SHA256)), append(missing, r.SHA256)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if more := len(at) - mostMissing; more > 0 {
		at = append(at[:mostMissing], fmt.Sprintf("and %d more", more))
	}
	e := apierr.New(apierr.MissingArtifact, "the input names texts that were not uploaded: %s", strings.Join(at, "; "))
	e.Details = missing
	return e.WithNext("upload them first, then submit again")
}

// checkSize refuses a body that no call can carry, which every attempt would otherwise fail on.
func (s *Server) checkSize(ctx context.Context, r params.Ref) error {
	body, a, err := s.o.Store.OpenArtifact(ctx, r.SHA256)
	if err != nil {
		return err
	}
	if err := body.Close(); err != nil {
		return err
	}
	if a.Size <= dispatch.BodyLimit {
		return nil
	}
	return apierr.New(apierr.InvalidArgument, "%s %s has %d bytes, a call carries at most %d (%d MiB)", r.At, r.Name, a.Size, dispatch.BodyLimit, dispatch.BodyLimit>>20).
		WithNext("split the document")
}
