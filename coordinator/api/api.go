// Package api serves the coordinator's gRPC service. It translates and checks; it decides nothing.
package api

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/pull"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/proto/prompts"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Options is what a Server answers from.
type Options struct {
	Engine   *engine.Engine
	Fleet    *fleet.Fleet
	Store    ledger.Store
	Host     script.Host
	Library  Library // workflows by name
	Limits   scheduler.Limits
	Budgets  map[string]run.Limits                           // of single workflows, by name; 0 is the default's, a negative number none
	Context  func(snap scheduler.Snapshot, model string) int // of a model where nobody says one, tokens per slot; 0: the default
	Pulls    *pull.Puller
	Suggest  func(context.Context) ([]pull.Suggestion, error) // downloads that would pay; nil: nobody wants to know
	Settings []string                                         // ids or names of nodes that the settings say something about
	Roles    map[string][]run.RoleModel                       // as the settings have them
	Prompts  prompts.Set                                      // that new runs pin
	// PromptsFolder is where texts of that set come from, "" for none: for people.
	PromptsFolder string
	Judges        JudgeBook
	Version       string
	FleetID       string
	Name          string
	DataDir       string
	Discovery     string // one line for people
	Log           *slog.Logger
}

// Server implements the services of coordinatorv1.
type Server struct {
	coordinatorv1.UnimplementedCoordinatorServiceServer
	coordinatorv1.UnimplementedSteerServiceServer
	coordinatorv1.UnimplementedWorkflowServiceServer
	o Options
}

// New returns a Server.
func New(o Options) *Server { return &Server{o: o} }

// Register makes a server answer for all services.
func (s *Server) Register(g grpc.ServiceRegistrar) {
	coordinatorv1.RegisterCoordinatorServiceServer(g, s)
	coordinatorv1.RegisterSteerServiceServer(g, s)
	coordinatorv1.RegisterWorkflowServiceServer(g, s)
	coordinatorv1.RegisterJudgeServiceServer(g, &judgeServer{s: s})
	s.registerRecords(g)
}

// Info implements the service.
func (s *Server) Info(ctx context.Context, _ *coordinatorv1.InfoRequest) (*coordinatorv1.InfoResponse, error) {
	nodes, _ := s.o.Fleet.View()
	out := &coordinatorv1.InfoResponse{Version: s.o.Version, Fleet: s.o.FleetID, Name: s.o.Name, DataDir: s.o.DataDir, Discovery: s.o.Discovery,
		Simulated: len(nodes) > 0}
	for _, n := range nodes {
		out.Simulated = out.Simulated && n.Simulated
		if n.State == scheduler.NodeUp {
			out.NodesUp++
		}
	}
	active, err := s.o.Engine.Runs(ctx, engine.Filter{States: openStates(), Limit: 1000})
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out.RunsActive = int32(len(active))
	return out, nil
}
