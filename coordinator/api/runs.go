package api

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
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
	return s.watched(stream.Context(), ended)
}

// watched tells a watch that ended with its run from one that was cut off: the run of that goes on.
func (s *Server) watched(ctx context.Context, ended bool) error {
	if ended || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := s.o.Engine.Err(); err != nil {
		return apierr.ToStatus(err)
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
		out.Outputs = append(out.Outputs, outputMessage(o))
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
		out.Items = append(out.Items, itemMessage(i))
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
	return s.watched(ctx, ended)
}

// position reads a step id; "" is -1.
func position(step string) (int, error) {
	if step == "" {
		return -1, nil
	}
	n, err := strconv.Atoi(step)
	if err != nil || n < 0 {
		return 0, apierr.New(apierr.InvalidArgument, "step %q is not a number", step).WithNext("loopkeeper show RUN  # lists the steps")
	}
	return n, nil
}
