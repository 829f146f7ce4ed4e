package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

const (
	// loadWait bounds a load: a large model from a slow disk takes minutes; a server that hangs must not block all moves.
	loadWait = 15 * time.Minute
	// unloadWait bounds how long an unload waits for the model to be gone: its running requests end first.
	unloadWait = 2 * time.Minute
	// renewWait bounds an empty prompt to a loaded model.
	renewWait = time.Minute
)

// move runs one load or unload at a time: concurrent loads on one Ollama race for memory.
func (s *Server) move(ctx context.Context, op, model string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, loadWait)
	defer cancel()
	select {
	case s.moving <- struct{}{}:
	case <-ctx.Done():
		return apierr.ToStatus(moveError(model, fmt.Errorf("%s %s: %w", op, model, ctx.Err())))
	}
	defer func() { <-s.moving }()
	defer s.monitor.refresh()
	if err := do(ctx); err != nil {
		return apierr.ToStatus(moveError(model, err))
	}
	return nil
}

// Load implements the service.
func (s *Server) Load(ctx context.Context, r *workerv1.LoadRequest) (*workerv1.LoadResponse, error) {
	if err := checkNumbers(r); err != nil {
		return nil, apierr.ToStatus(err)
	}
	m := r.GetModel()
	var out *workerv1.LoadResponse
	err := s.move(ctx, "load", m.GetName(), func(ctx context.Context) error {
		if err := s.sameDigest(ctx, m); err != nil {
			return err
		}
		before := s.look(ctx, m.GetName())
		began := time.Now() // Ollama does not tell how long a load without a prompt took
		l, err := s.o.Ollama.Load(ctx, m.GetName(), int(m.GetContext()))
		if err != nil {
			return err
		}
		out = &workerv1.LoadResponse{Loaded: loadedMessage(l.Loaded), LoadNanos: int64(time.Since(began)), Spilled: s.spilled(l.Loaded)}
		if bytes, known := taken(before, s.look(ctx, m.GetName())); known {
			out.ObservedBytes = &bytes
		}
		return nil
	})
	return out, err
}

// Renew implements the service. It waits for no load: it moves nothing.
func (s *Server) Renew(ctx context.Context, r *workerv1.RenewRequest) (*workerv1.RenewResponse, error) {
	if err := checkNumbers(r); err != nil {
		return nil, apierr.ToStatus(err)
	}
	m := r.GetModel()
	ctx, cancel := context.WithTimeout(ctx, renewWait)
	defer cancel()
	there, err := s.o.Ollama.Renew(ctx, m.GetName(), int(m.GetContext()))
	if err != nil {
		return nil, apierr.ToStatus(moveError(m.GetName(), err))
	}
	if !there {
		s.monitor.refresh()
	}
	return &workerv1.RenewResponse{Loaded: there}, nil
}

// sameDigest refuses a name that stands for another model here.
func (s *Server) sameDigest(ctx context.Context, m *workerv1.ModelSpec) error {
	if m.GetDigest() == "" {
		return nil
	}
	have, err := s.o.Ollama.Resolve(ctx, m.GetName())
	if err == nil && have.Digest != m.GetDigest() {
		err = apierr.New(apierr.NotFound, "%s has %s with digest %.12s, asked for %.12s", s.o.Name, m.GetName(), have.Digest, m.GetDigest()).
			WithNext("ollama pull " + m.GetName())
	}
	return err
}

// spilled says whether part of a model lies outside the accelerator, where there is one. Without an accelerator nothing
// is on it, and that is no spill.
func (s *Server) spilled(l ollama.Loaded) bool {
	return slices.ContainsFunc(s.Report().GetPools(), accelerated) && l.SizeVRAM < l.Size
}

func accelerated(p *workerv1.Pool) bool { return p.GetKind() != string(hwprobe.PoolOfHost) }

// Unload implements the service.
func (s *Server) Unload(ctx context.Context, r *workerv1.UnloadRequest) (*workerv1.UnloadResponse, error) {
	err := s.move(ctx, "unload", r.GetName(), func(ctx context.Context) error { return s.o.Ollama.Unload(ctx, r.GetName(), unloadWait) })
	if err != nil {
		return nil, err
	}
	return &workerv1.UnloadResponse{}, nil
}

// Pull implements the service.
func (s *Server) Pull(r *workerv1.PullRequest, stream workerv1.WorkerService_PullServer) error {
	defer s.monitor.refresh()
	var sent error
	err := s.o.Ollama.Pull(stream.Context(), r.GetName(), func(p ollama.Progress) {
		if sent == nil {
			sent = stream.Send(&workerv1.PullResponse{Status: p.Status, CompletedBytes: uint64(p.Completed), TotalBytes: uint64(p.Total)})
		}
	})
	if err != nil {
		return apierr.ToStatus(moveError(r.GetName(), err))
	}
	return sent
}

// moveError gives a failed move its code. One that has a code keeps it. What failed is said already: every error of the client names it.
func moveError(model string, err error) error {
	var known *apierr.Error
	if errors.As(err, &known) {
		return err
	}
	switch ollama.KindOf(err) {
	case ollama.ModelMissing:
		return apierr.New(apierr.NotFound, "%v", err).WithNext("ollama pull " + model)
	case ollama.OutOfMemory:
		return apierr.New(apierr.CannotFit, "%v", err)
	case ollama.BadRequest:
		return apierr.New(apierr.InvalidArgument, "%v", err)
	}
	if errors.Is(err, context.Canceled) {
		return apierr.New(apierr.Cancelled, "%v", err)
	}
	return apierr.New(apierr.Unavailable, "%v", err)
}

func loadedMessage(l ollama.Loaded) *workerv1.LoadedModel {
	return &workerv1.LoadedModel{Name: l.Name, Digest: l.Digest, SizeBytes: uint64(l.Size), VramBytes: uint64(l.SizeVRAM), Context: int32(l.Context), Expires: timestamppb.New(l.ExpiresAt)}
}
