package api

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// GetRun implements the service.
func (s *Server) GetRun(ctx context.Context, r *coordinatorv1.GetRunRequest) (*coordinatorv1.GetRunResponse, error) {
	v, err := s.o.Engine.Run(ctx, r.GetRunId())
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	return &coordinatorv1.GetRunResponse{Run: runMessage(v)}, nil
}

// ListRuns implements the service.
func (s *Server) ListRuns(ctx context.Context, r *coordinatorv1.ListRunsRequest) (*coordinatorv1.ListRunsResponse, error) {
	f := engine.Filter{Limit: max(0, int(r.GetLimit()))}
	for _, st := range r.GetStates() {
		if !slices.Contains(run.Statuses(), run.Status(st)) {
			return nil, apierr.ToStatus(apierr.New(apierr.InvalidArgument, "no run is ever %q", st).WithNext(fmt.Sprintf("use one of %v", run.Statuses())))
		}
		f.States = append(f.States, run.Status(st))
	}
	views, err := s.o.Engine.Runs(ctx, f)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out := &coordinatorv1.ListRunsResponse{}
	for _, v := range views {
		out.Runs = append(out.Runs, runMessage(v))
	}
	return out, nil
}

// WatchRun implements the service.
func (s *Server) WatchRun(r *coordinatorv1.WatchRunRequest, stream coordinatorv1.CoordinatorService_WatchRunServer) error {
	views, err := s.o.Engine.Watch(stream.Context(), r.GetRunId())
	if err != nil {
		return apierr.ToStatus(err)
	}
	ended := false
	for v := range views {
		ended = v.Status.Ended()
		if err := stream.Send(&coordinatorv1.WatchRunResponse{Run: runMessage(v)}); err != nil {
			return err
		}
	}
	return watched(stream.Context(), ended)
}

// watched tells a watch that ended with its run from one that was cut off: the run of that goes on.
func watched(ctx context.Context, ended bool) error {
	if ended || ctx.Err() != nil {
		return ctx.Err()
	}
	return apierr.ToStatus(apierr.New(apierr.Unavailable, "the coordinator is stopping; the run goes on when it is back").WithNext("loopkeeper up"))
}

// CancelRun implements the service.
func (s *Server) CancelRun(ctx context.Context, r *coordinatorv1.CancelRunRequest) (*coordinatorv1.CancelRunResponse, error) {
	v, err := s.o.Engine.Cancel(ctx, r.GetRunId(), r.GetReason())
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	return &coordinatorv1.CancelRunResponse{Run: runMessage(v)}, nil
}

// GetResult implements the service.
func (s *Server) GetResult(ctx context.Context, r *coordinatorv1.GetResultRequest) (*coordinatorv1.GetResultResponse, error) {
	v, err := s.o.Engine.Run(ctx, r.GetRunId())
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	outputs, err := s.o.Engine.Outputs(ctx, v.ID)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out := &coordinatorv1.GetResultResponse{Run: runMessage(v)}
	for _, o := range outputs {
		m := &coordinatorv1.Output{Name: o.Name, ValueJson: o.Value}
		if o.Ref != nil {
			m.Ref = &coordinatorv1.Ref{Sha256: o.Ref.SHA256, Name: o.Ref.Name, Bytes: uint64(o.Ref.Bytes)}
		}
		for _, p := range o.Sources {
			m.Sources = append(m.Sources, strconv.Itoa(p))
		}
		out.Outputs = append(out.Outputs, m)
	}
	return out, nil
}

// The most of one page of items, which is one message: fewer come when they are large, but always one.
const (
	pageItems = 1000
	pageBytes = 2 << 20
)

// GetItems implements the service.
func (s *Server) GetItems(ctx context.Context, r *coordinatorv1.GetItemsRequest) (*coordinatorv1.GetItemsResponse, error) {
	step, err := position(r.GetStep())
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	page, err := s.o.Engine.Items(ctx, r.GetRunId(), step, int(r.GetFrom()), min(int(r.GetLimit()), pageItems))
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out := &coordinatorv1.GetItemsResponse{Total: int32(page.Total), FinalPrefix: int32(page.FinalPrefix)}
	size := 0
	for _, i := range page.Items {
		if size += len(i.Value) + len(i.Text); size > pageBytes && len(out.Items) > 0 {
			break
		}
		out.Items = append(out.Items, &coordinatorv1.Item{Index: int32(i.Index), Key: i.Key, State: string(i.Status), ValueJson: i.Value, Text: i.Text,
			FailureKind: i.FailureKind, Failure: i.Failure, Attempts: int32(i.Attempts), Node: i.Node, Simulated: i.Simulated})
	}
	return out, nil
}

// tracePage is how many events are read at a time.
const tracePage = 512

// GetTrace implements the service.
func (s *Server) GetTrace(r *coordinatorv1.GetTraceRequest, stream coordinatorv1.CoordinatorService_GetTraceServer) error {
	ctx := stream.Context()
	id, err := s.o.Engine.Resolve(ctx, r.GetRunId())
	if err != nil {
		return apierr.ToStatus(err)
	}
	after := r.GetAfterSeq()
	send := func() error {
		for {
			events, err := s.o.Store.Events(ctx, id, after, tracePage)
			if err != nil {
				return apierr.ToStatus(err)
			}
			for _, e := range events {
				after = e.Seq
				if err := stream.Send(traceMessage(e)); err != nil {
					return err
				}
			}
			if len(events) < tracePage {
				return nil
			}
		}
	}
	if !r.GetFollow() {
		return send()
	}
	views, err := s.o.Engine.Watch(ctx, id)
	if err != nil {
		return apierr.ToStatus(err)
	}
	ended := false
	for v := range views {
		ended = v.Status.Ended()
		if err := send(); err != nil {
			return err
		}
	}
	return watched(ctx, ended)
}

func traceMessage(e ledger.Event) *coordinatorv1.GetTraceResponse {
	return &coordinatorv1.GetTraceResponse{Seq: e.Seq, Time: timestamppb.New(e.Time), Kind: e.Kind, PayloadJson: e.Payload}
}

// position reads a step id; "" is -1.
func position(step string) (int, error) {
	if step == "" {
		return -1, nil
	}
	n, err := strconv.Atoi(step)
	if err != nil || n < 0 {
		return 0, apierr.New(apierr.InvalidArgument, "step %q is not a number", step).WithNext("loopkeeper show RUN lists the steps")
	}
	return n, nil
}

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func counts(c run.Counts) *coordinatorv1.Counts {
	return &coordinatorv1.Counts{Total: int64(c.Total), Succeeded: int64(c.Succeeded), Failed: int64(c.Failed), Running: int64(c.Running),
		Waiting: int64(c.Waiting), Cancelled: int64(c.Cancelled), Retried: int64(c.Retried)}
}

func runMessage(v engine.View) *coordinatorv1.Run {
	m := &coordinatorv1.Run{Id: v.ID, Workflow: v.Workflow, State: string(v.Status), Created: stamp(v.Created), Started: stamp(v.Started), Ended: stamp(v.Ended),
		Error: v.Error, ErrorStack: v.ErrorStack, Items: counts(v.Items), PromptTokens: v.PromptTokens, OutputTokens: v.OutputTokens, Calls: v.Calls,
		Simulated: v.Simulated, Logs: v.Logs, ScriptSha256: v.Script, Seed: v.Seed, Key: v.Key, Outputs: v.Outputs}
	for _, st := range v.Steps {
		m.Steps = append(m.Steps, &coordinatorv1.Step{Id: strconv.Itoa(st.Pos), Kind: st.Kind, Label: st.Label, State: string(st.Status), Model: st.Model,
			Items: counts(st.Items), WaitingFor: st.WaitingFor, Started: stamp(st.Started), Ended: stamp(st.Ended), Error: st.Error, Node: st.Node})
	}
	for _, n := range v.Nodes {
		m.Nodes = append(m.Nodes, &coordinatorv1.NodeShare{NodeId: n.NodeID, Name: n.Name, Items: n.Items, FailedTries: n.FailedTries,
			OutputTokens: n.OutputTokens, OutputNanos: int64(n.OutputTime), Simulated: n.Simulated})
	}
	for _, f := range v.InFlight {
		m.InFlight = append(m.InFlight, &coordinatorv1.InFlight{Step: strconv.Itoa(f.Step), Item: int32(f.Item), Label: f.Label, Node: f.Node, Model: f.Model,
			Attempt: int32(f.Attempt), Tokens: f.Tokens, TokensPerSecond: f.TokensPerSecond, Since: stamp(f.Since), Phase: f.Phase})
	}
	for _, w := range v.Waiting {
		m.Waiting = append(m.Waiting, &coordinatorv1.Reason{WaitingFor: w.WaitingFor, Count: int64(w.Count), Why: w.Why})
	}
	for _, g := range v.Failures {
		m.Failures = append(m.Failures, &coordinatorv1.FailureGroup{Kind: g.Kind, Message: g.Message, Count: int64(len(g.Items)), Items: g.Items, RetryHelps: g.RetryHelps, Next: g.Next})
	}
	return m
}
