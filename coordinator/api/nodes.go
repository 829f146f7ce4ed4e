package api

import (
	"context"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// incidentsShown is how many of a node's incidents a list has.
const incidentsShown = 5

// ListNodes implements the service.
func (s *Server) ListNodes(ctx context.Context, _ *coordinatorv1.ListNodesRequest) (*coordinatorv1.ListNodesResponse, error) {
	out, err := s.listNodes(ctx)
	return out, apierr.ToStatus(err)
}

func (s *Server) listNodes(ctx context.Context) (*coordinatorv1.ListNodesResponse, error) {
	f, err := s.fleet(ctx)
	if err != nil {
		return nil, err
	}
	records, err := s.o.Judges.Records(ctx)
	if err != nil {
		return nil, err
	}
	out := &coordinatorv1.ListNodesResponse{Candidates: f.candidates, Findings: append(s.findings(f), s.roleFindings(f, records)...), Roles: roleMessages(s.o.Roles)}
	for _, n := range f.views {
		out.Nodes = append(out.Nodes, s.node(f, n))
	}
	queues, err := s.o.Engine.Queue(ctx)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		out.Waiting = append(out.Waiting, &coordinatorv1.ModelQueue{Model: q.Model, Waiting: int64(q.Waiting), WaitingFor: q.WaitingFor, Why: q.Why})
	}
	out.Resources = resourceUses(f.snap, s.o.Limits)
	if out.Suggestions, err = s.suggestions(ctx); err != nil {
		return nil, err
	}
	for _, model := range sortedKeys(s.o.Limits.Pins) {
		out.Pins = append(out.Pins, &coordinatorv1.Pin{Model: model, Nodes: s.o.Limits.Pins[model]})
	}
	return out, nil
}

// known is what is known of the fleet at one moment.
type known struct {
	views      []fleet.View
	candidates []string
	status     map[string]engine.NodeStatus
	pools      map[string][]scheduler.PoolFit
	incidents  map[string][]engine.Incident // the newest few, newest first
	snap       scheduler.Snapshot
}

func (s *Server) fleet(ctx context.Context) (known, error) {
	f := known{status: map[string]engine.NodeStatus{}, pools: map[string][]scheduler.PoolFit{}, incidents: map[string][]engine.Incident{}}
	f.views, f.candidates = s.o.Fleet.View()
	all, err := s.o.Engine.Nodes(ctx)
	if err != nil {
		return f, err
	}
	for _, n := range all {
		f.status[n.Node.ID] = n
	}
	if f.snap, err = s.o.Engine.Snapshot(ctx); err != nil {
		return f, err
	}
	for _, n := range scheduler.Fit(f.snap, scheduler.FitQuestion{}, s.o.Limits).Nodes {
		f.pools[n.Node] = n.Pools
	}
	for _, v := range f.views {
		if f.incidents[v.ID], err = s.o.Engine.Incidents(ctx, v.ID, incidentsShown); err != nil {
			return f, err
		}
	}
	return f, nil
}

// node is one node with what fleet and engine know of it.
func (s *Server) node(f known, n fleet.View) *coordinatorv1.Node {
	m := &coordinatorv1.Node{Id: n.ID, Name: n.Name, Address: n.Address, State: string(n.State), LastSeen: stamp(n.LastSeen), Version: n.Version,
		Simulated: n.Simulated, FoundBy: n.FoundBy, Report: n.Report, Busy: int32(s.o.Engine.Busy(n.ID)), Problem: n.Problem}
	if st, ok := f.status[n.ID]; ok {
		m.State, m.Why, m.Until, m.MaxCalls = string(st.Node.State), st.Why, stamp(st.Until), int32(st.Node.MaxCalls)
		m.Claims = claims(st)
	}
	for _, p := range f.pools[n.ID] {
		m.Pools = append(m.Pools, poolMessage(p))
	}
	m.Incidents = incidentMessages(f.incidents[n.ID])
	if s.o.Pulls != nil {
		under := s.o.Pulls.UnderWay(n.ID)
		for _, model := range sortedKeys(under) {
			m.Pulls = append(m.Pulls, pullMessage(model, under[model]))
		}
	}
	return m
}

// claims are what models hold of a node's memory, and what the load in flight will.
func claims(st engine.NodeStatus) []*coordinatorv1.Claim {
	var out []*coordinatorv1.Claim
	n := st.Node
	slots := func(digest string) int32 {
		for _, m := range n.Models {
			if m.Digest == digest {
				return int32(scheduler.Slots(n, m))
			}
		}
		return int32(max(1, n.Slots))
	}
	for i, l := range n.Loaded {
		if n.Loading != nil && n.Loading.Digest == l.Digest {
			continue // reported already, while its load has not returned: one model has one claim
		}
		c := &coordinatorv1.Claim{Model: l.Name, Digest: l.Digest, Bytes: l.SizeBytes, VramBytes: &l.VRAMBytes, Context: int32(l.Context), Busy: int32(l.Busy),
			Slots: slots(l.Digest), Pinned: l.Pinned, Leaving: l.Leaving, Since: stamp(l.Since)}
		if i < len(st.Kept) {
			k := st.Kept[i]
			c.Foreign, c.Condemned, c.Idle = !k.Ours, k.Condemned, stamp(k.Idle)
		}
		out = append(out, c)
	}
	if c := n.Loading; c != nil {
		out = append(out, &coordinatorv1.Claim{Model: c.Name, Digest: c.Digest, Bytes: c.Need, Context: int32(c.Context), Slots: slots(c.Digest), Loading: true,
			Since: stamp(c.Since)})
	}
	return out
}

func poolMessage(p scheduler.PoolFit) *coordinatorv1.PoolUse {
	return &coordinatorv1.PoolUse{Id: p.ID, Kind: string(p.Kind), TotalBytes: optional(p.Total), FreeBytes: optional(p.Free), ClaimsBytes: p.Claims,
		ForeignBytes: p.Foreign, ReserveBytes: p.Reserve, AvailableBytes: optional(p.Available), Stale: p.Stale}
}

func optional(b scheduler.Bytes) *uint64 {
	if !b.Known {
		return nil
	}
	return &b.N
}

func incidentMessages(list []engine.Incident) (out []*coordinatorv1.Incident) {
	for _, i := range list {
		out = append(out, &coordinatorv1.Incident{Time: stamp(i.Time), Kind: i.Kind, Model: i.Model, Text: i.Text})
	}
	return out
}

// resourceUses are the resources with a limit, and what waits for each. Of a long queue the scheduler sees what could start next.
func resourceUses(snap scheduler.Snapshot, limits scheduler.Limits) (out []*coordinatorv1.ResourceUse) {
	if len(snap.Resources) == 0 {
		return nil
	}
	queues := scheduler.Place(snap, limits).Queues
	for _, name := range sortedKeys(snap.Resources) {
		r := snap.Resources[name]
		m := &coordinatorv1.ResourceUse{Name: name, Cap: int32(r.Cap), InUse: int32(r.InUse), Rate: r.Rate}
		if i := slices.IndexFunc(queues, func(q scheduler.Queue) bool { return q.Resource == name }); i >= 0 {
			m.Waiting, m.NextNanos = int64(queues[i].Waiting), int64(queues[i].Next)
		}
		out = append(out, m)
	}
	return out
}

// find returns the node with an id, else the only one with a name.
func find(views []fleet.View, node string) (fleet.View, error) {
	var named []fleet.View
	for _, v := range views {
		if v.ID == node {
			return v, nil
		}
		if v.Name == node {
			named = append(named, v)
		}
	}
	switch len(named) {
	case 1:
		return named[0], nil
	case 0:
		return fleet.View{}, apierr.New(apierr.NotFound, "no machine is named %s", node).WithNext("loopkeeper nodes")
	default:
		return fleet.View{}, apierr.New(apierr.InvalidArgument, "%d machines are named %s: give the id of one", len(named), node).
			WithNext("loopkeeper nodes -o json")
	}
}

// nodeWord names a node in a command: by its id where its name is no single word.
func nodeWord(name, id string) string {
	if name == "" || strings.ContainsAny(name, " \t\"'`\\$&|;<>()[]{}*?~#!") {
		return id
	}
	return name
}

// ollamaName is a model's name as Ollama knows it: without a tag it is the latest.
func ollamaName(name string) string {
	if strings.LastIndexByte(name, ':') > strings.LastIndexByte(name, '/') {
		return name
	}
	return name + ":latest"
}
