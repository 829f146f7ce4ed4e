package api

import (
	"context"
	"fmt"

	"github.com/loopkeeper/loopkeeper/coordinator/answers"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Audit implements the service.
func (r *records) Audit(ctx context.Context, q *coordinatorv1.AuditRequest) (*coordinatorv1.AuditResponse, error) {
	checks, err := r.audit(ctx, q.GetRunId())
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out := &coordinatorv1.AuditResponse{}
	for _, c := range checks {
		out.Checks = append(out.Checks, &coordinatorv1.Check{Code: c.Code, Question: c.Question, Passed: c.Passed(), Answer: c.Answer, Findings: c.Findings})
	}
	return out, nil
}

func (r *records) audit(ctx context.Context, id string) ([]answers.Check, error) {
	id, head, err := r.begin(ctx, id)
	if err != nil {
		return nil, err
	}
	around := answers.Around{Head: answers.ChainEnd(head), Gone: map[string]string{}, Children: map[string]*run.State{}}
	record, err := answers.Fold(r.events(ctx, id, head.Seq, func(e ledger.Event) {
		around.Computed = around.Computed.Next(e.RunID, e.Seq, e.Time, e.Kind, e.Payload)
	}))
	if err != nil {
		return nil, err
	}
	for _, sha := range record.Needs() {
		_, gone, err := r.stat(ctx, sha)
		if err != nil {
			return nil, err
		}
		if gone != "" {
			around.Gone[sha] = gone
		}
	}
	for _, st := range record.State.Requests {
		if st.Child == nil || around.Children[st.Child.Run] != nil {
			continue
		}
		head, err := r.s.o.Store.Head(ctx, st.Child.Run)
		if apierr.CodeOf(err) == apierr.NotFound { // of an imported run
			continue
		}
		if err != nil {
			return nil, err
		}
		child, err := answers.Fold(r.events(ctx, st.Child.Run, head.Seq, nil))
		if err != nil {
			return nil, err
		}
		around.Children[st.Child.Run] = child.State
	}
	return record.Audit(around), nil
}

// ReplayRun implements the service.
func (r *records) ReplayRun(ctx context.Context, q *coordinatorv1.ReplayRunRequest) (*coordinatorv1.ReplayRunResponse, error) {
	rep, err := r.s.o.Engine.Replay(ctx, q.GetRunId())
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out := &coordinatorv1.ReplayRunResponse{Steps: int32(rep.Steps), Nanos: int64(rep.Took), State: string(rep.State)}
	if d := rep.Divergence; d != nil {
		out.Position, out.Expected, out.Got = fmt.Sprint(d.Pos), d.Expected, d.Got
		out.Diverged = fmt.Sprintf("at position %d the script asked for something else than is recorded", d.Pos)
	}
	return out, nil
}
