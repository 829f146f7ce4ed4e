package api

import (
	"context"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// UseNode implements the service.
func (s *Server) UseNode(ctx context.Context, r *coordinatorv1.UseNodeRequest) (*coordinatorv1.UseNodeResponse, error) {
	out, err := s.useNode(ctx, r)
	return out, apierr.ToStatus(err)
}

func (s *Server) useNode(ctx context.Context, r *coordinatorv1.UseNodeRequest) (*coordinatorv1.UseNodeResponse, error) {
	views, _ := s.o.Fleet.View()
	v, err := find(views, r.GetNode())
	if err != nil {
		return nil, err
	}
	out := &coordinatorv1.UseNodeResponse{Calls: int32(s.o.Engine.Busy(v.ID))}
	if r.GetSeconds() != 0 && r.GetUse() != "pause" {
		return nil, apierr.New(apierr.InvalidArgument, "only a pause ends by itself").WithNext("loopkeeper nodes pause " + r.GetNode() + " --for 2h")
	}
	switch r.GetUse() {
	case "drain":
		err = s.o.Engine.Drain(ctx, v.ID)
	case "resume":
		err = s.o.Engine.Resume(ctx, v.ID)
	case "pause":
		var d time.Duration
		if d, err = timeLimit(r.GetSeconds()); err == nil {
			err = s.o.Engine.Pause(ctx, v.ID, d)
		}
	default:
		err = apierr.New(apierr.InvalidArgument, "a machine is drained, paused or resumed, not %q", r.GetUse()).WithNext("loopkeeper nodes --help")
	}
	if err != nil {
		return nil, err
	}
	f, err := s.fleet(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range f.views {
		if n.ID == v.ID {
			out.Node = s.node(f, n)
		}
	}
	return out, nil
}
