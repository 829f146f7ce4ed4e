package api

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	"github.com/loopkeeper/loopkeeper/coordinator/pull"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// PullModel implements the service. A machine that fails does not end the others.
func (s *Server) PullModel(r *coordinatorv1.PullModelRequest, stream coordinatorv1.CoordinatorService_PullModelServer) error {
	nodes, err := s.pullNodes(r)
	if err != nil {
		return apierr.ToStatus(err)
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	news := make(chan *coordinatorv1.PullModelResponse)
	var work sync.WaitGroup
	for _, n := range nodes {
		work.Go(func() { s.pullOn(ctx, n, r.GetModel(), news) })
	}
	go func() {
		work.Wait()
		close(news)
	}()
	var sent error
	for m := range news {
		if sent == nil {
			if sent = stream.Send(m); sent != nil {
				cancel() // nobody listens any more; the rest is drained
			}
		}
	}
	if sent == nil {
		sent = ctx.Err()
	}
	return sent
}

// pullNodes are the nodes that a request names.
func (s *Server) pullNodes(r *coordinatorv1.PullModelRequest) ([]fleet.View, error) {
	views, _ := s.o.Fleet.View()
	up := slices.DeleteFunc(slices.Clone(views), func(v fleet.View) bool { return v.State != scheduler.NodeUp })
	switch name := r.GetModel(); {
	case name == "" || strings.ContainsAny(name, " \t\n"):
		return nil, apierr.New(apierr.InvalidArgument, "%q is no name of a model", name).WithNext("loopkeeper models pull qwen3:8b --everywhere")
	case r.GetEverywhere() && len(r.GetNodes()) > 0:
		return nil, apierr.New(apierr.InvalidArgument, "machines are named, and everywhere is asked for").WithNext("leave one of the two out")
	case r.GetEverywhere() && len(up) == 0:
		return nil, apierr.New(apierr.Unavailable, "no machine is up").WithNext("loopkeeper nodes")
	case r.GetEverywhere():
		return up, nil
	case len(r.GetNodes()) == 0:
		return nil, apierr.New(apierr.InvalidArgument, "no machine is named").WithNext("loopkeeper models pull "+name+" --everywhere", "loopkeeper nodes")
	}
	var out []fleet.View
	for _, node := range r.GetNodes() {
		v, err := find(views, node)
		if err != nil {
			return nil, err
		}
		if v.State != scheduler.NodeUp {
			return nil, apierr.New(apierr.Unavailable, "%s is %s, so it cannot download anything", node, v.State).WithNext("loopkeeper nodes " + node)
		}
		if !slices.ContainsFunc(out, func(o fleet.View) bool { return o.ID == v.ID }) {
			out = append(out, v)
		}
	}
	return out, nil
}

// pullOn has one machine download, and tells how far it is and how it ended.
func (s *Server) pullOn(ctx context.Context, n fleet.View, model string, news chan<- *coordinatorv1.PullModelResponse) {
	tell := func(m *coordinatorv1.PullModelResponse) {
		m.Node = n.Name
		select {
		case news <- m:
		case <-ctx.Done():
		}
	}
	var last pull.Progress
	err := s.o.Pulls.Pull(ctx, n.ID, model, func(p pull.Progress) {
		last = p
		tell(&coordinatorv1.PullModelResponse{Pull: pullMessage(model, p)})
	})
	if err == nil {
		s.awaitModel(ctx, n.ID, model)
	}
	m := &coordinatorv1.PullModelResponse{Pull: pullMessage(model, last), Done: err == nil}
	if err != nil {
		e := apierr.As(err)
		m.Error, m.Next = e.Error(), e.Next
		if e.Code == apierr.NotFound {
			m.Next = []string{"check the name of the model at ollama.com/library"}
		}
	}
	tell(m)
}

// reportWait is how long a report that shows a new model is waited for: a few heartbeats.
const reportWait = 10 * time.Second

// awaitModel returns when a node reports a model, so that whoever pulled it can use it at once; or when that takes too long.
func (s *Server) awaitModel(ctx context.Context, node, model string) {
	ctx, cancel := context.WithTimeout(ctx, reportWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		views, _ := s.o.Fleet.View()
		for _, v := range views {
			if v.ID == node && slices.ContainsFunc(v.Report.GetModels(), func(m *workerv1.Model) bool { return ollamaName(m.GetName()) == ollamaName(model) }) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func pullMessage(model string, p pull.Progress) *coordinatorv1.Pull {
	return &coordinatorv1.Pull{Model: model, Status: p.Status, CompletedBytes: p.Completed, TotalBytes: p.Total, BytesPerSecond: p.Rate}
}
