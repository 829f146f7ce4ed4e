// Package api serves the coordinator's gRPC service. It translates and checks; it decides nothing.
package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"unicode/utf8"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Options is what a Server answers from.
type Options struct {
	Engine    *engine.Engine
	Fleet     *fleet.Fleet
	Store     ledger.Store
	Host      script.Host
	Limits    scheduler.Limits
	Contexts  map[string]int // configured context by model, tokens per slot
	Version   string
	FleetID   string
	Name      string
	DataDir   string
	Discovery string // one line for people
	Log       *slog.Logger
}

// Server implements coordinatorv1.CoordinatorServiceServer.
type Server struct {
	coordinatorv1.UnimplementedCoordinatorServiceServer
	o Options
}

// New returns a Server.
func New(o Options) *Server { return &Server{o: o} }

// Info implements the service.
func (s *Server) Info(ctx context.Context, _ *coordinatorv1.InfoRequest) (*coordinatorv1.InfoResponse, error) {
	nodes, _ := s.o.Fleet.View()
	out := &coordinatorv1.InfoResponse{Version: s.o.Version, Fleet: s.o.FleetID, Name: s.o.Name, DataDir: s.o.DataDir, Discovery: s.o.Discovery, Simulated: len(nodes) > 0}
	for _, n := range nodes {
		out.Simulated = out.Simulated && n.Simulated
		if n.State == scheduler.NodeUp {
			out.NodesUp++
		}
	}
	active, err := s.o.Engine.Runs(ctx, engine.Filter{States: []run.Status{run.Queued, run.Running, run.Waiting, run.Suspended}, Limit: 1000})
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out.RunsActive = int32(len(active))
	return out, nil
}

// artifactLimit is the largest artifact a client may store, bytes.
const artifactLimit = 64 << 20

// PutArtifact implements the service. It takes text only: a binary file given by mistake would reach a model as noise.
func (s *Server) PutArtifact(stream coordinatorv1.CoordinatorService_PutArtifactServer) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return apierr.ToStatus(apierr.New(apierr.InvalidArgument, "nothing was sent"))
	}
	if err != nil {
		return err
	}
	r := &textReader{name: first.GetName(), rest: first.GetChunk(), next: func() ([]byte, error) {
		msg, err := stream.Recv()
		return msg.GetChunk(), err
	}}
	a, err := s.o.Store.PutArtifact(stream.Context(), first.GetName(), r)
	if err != nil {
		return apierr.ToStatus(err)
	}
	return stream.SendAndClose(&coordinatorv1.PutArtifactResponse{Ref: &coordinatorv1.Ref{Sha256: a.SHA256, Name: first.GetName(), Bytes: uint64(a.Size)}})
}

// textReader passes chunks on and refuses what is not UTF-8 text.
type textReader struct {
	name string
	next func() ([]byte, error)
	rest []byte // of the chunk at hand, to be read
	tail []byte // bytes of a character that a chunk boundary cut
	size int
}

// Read implements io.Reader.
func (r *textReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		chunk, err := r.next()
		if errors.Is(err, io.EOF) && len(r.tail) > 0 {
			return 0, r.binary()
		}
		if err != nil {
			return 0, err
		}
		r.rest = chunk
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	r.size += n
	if r.size > artifactLimit {
		return 0, apierr.New(apierr.InvalidArgument, "%s is larger than %d MiB", r.name, artifactLimit>>20).WithNext("split the document")
	}
	return n, r.check(p[:n])
}

func (r *textReader) check(p []byte) error {
	data := append(r.tail, p...)
	for len(data) > 0 {
		c, size := utf8.DecodeRune(data)
		if c == 0 || c == utf8.RuneError && size == 1 && utf8.FullRune(data) {
			return r.binary()
		}
		if c == utf8.RuneError && size <= 1 {
			break // a cut character: its end comes with the next chunk
		}
		data = data[size:]
	}
	r.tail = append([]byte(nil), data...)
	return nil
}

func (r *textReader) binary() error {
	return apierr.New(apierr.InvalidArgument, "%s is not UTF-8 text", r.name).WithNext("convert it to text first, such as with pdftotext or pandoc")
}

// GetArtifact implements the service.
func (s *Server) GetArtifact(r *coordinatorv1.GetArtifactRequest, stream coordinatorv1.CoordinatorService_GetArtifactServer) error {
	f, _, err := s.o.Store.OpenArtifact(stream.Context(), r.GetSha256())
	if err != nil {
		return apierr.ToStatus(err)
	}
	defer f.Close()
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			if err := stream.Send(&coordinatorv1.GetArtifactResponse{Chunk: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return apierr.ToStatus(err)
		}
	}
}
