package coordinator

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/api"
	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/schedule"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// schedules are what starts runs by itself, and how it hears of their ends.
type schedules struct {
	engine *engine.Engine
	runner *schedule.Runner
	ready  chan struct{} // closed when runner is there
	ctx    context.Context
	end    context.CancelFunc

	watching sync.WaitGroup
	mu       sync.Mutex
	watched  map[string]bool // runs whose ends somebody waits for
}

// startSchedules goes on with the schedules that the ledger holds. What they start is checked as what people start.
func (c *Coordinator) startSchedules(ctx context.Context, server *api.Server) (*schedules, error) {
	s := &schedules{engine: c.engine, ready: make(chan struct{}), watched: map[string]bool{}}
	s.ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	s.runner, err = schedule.Start(ctx, schedule.Options{Store: scheduleStore{c.o.Store}, Cancel: s.cancel, Ends: s.ends,
		Scanner: storing{store: c.o.Store}, Logger: c.o.Log.With("part", "schedule"),
		Submit: func(ctx context.Context, spec schedule.Spec, f schedule.Firing) (string, error) {
			run, err := server.Fire(ctx, spec, f)
			if err == nil {
				s.watch(run)
			}
			return run, err
		}})
	if err != nil {
		s.end()
		return nil, err
	}
	close(s.ready)
	return s, nil
}

func (s *schedules) close() {
	s.runner.Close()
	s.end()
	s.watching.Wait()
}

func (s *schedules) cancel(ctx context.Context, run string) error {
	_, err := s.engine.Cancel(ctx, run, "its schedule starts anew")
	if apierr.CodeOf(err) == apierr.Conflict { // it has ended
		return nil
	}
	return err
}

func (s *schedules) ends(ctx context.Context, runs []string) ([]schedule.End, error) {
	var out []schedule.End
	for _, id := range runs {
		v, err := s.engine.Run(ctx, id)
		if err != nil {
			return out, err
		}
		if !v.Status.Ended() {
			s.watch(id)
			continue
		}
		coverage, failed := v.Coverage, v.Items.Failed
		out = append(out, schedule.End{Run: id, State: string(v.Status), At: v.Ended, Coverage: &coverage, Failures: &failed})
	}
	return out, nil
}

// watch has the schedules look again when a run has ended.
func (s *schedules) watch(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched[run] {
		return
	}
	s.watched[run] = true
	s.watching.Go(func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.watched, run)
		}()
		views, err := s.engine.Watch(s.ctx, run)
		if err != nil {
			return // the schedules ask for the end now and then anyhow
		}
		for range views { // until it has ended
		}
		select {
		case <-s.ready:
			s.runner.Wake()
		case <-s.ctx.Done():
		}
	})
}

// scheduleStore keeps schedules in the ledger.
type scheduleStore struct{ store ledger.Store }

// Schedules implements schedule.Store.
func (s scheduleStore) Schedules(ctx context.Context) (map[string]json.RawMessage, error) {
	rows, err := s.store.Schedules(ctx)
	out := map[string]json.RawMessage{}
	for _, r := range rows {
		out[r.Name] = r.Value
	}
	return out, err
}

// SaveSchedule implements schedule.Store.
func (s scheduleStore) SaveSchedule(ctx context.Context, name string, data json.RawMessage) error {
	return s.store.Append(ctx, ledger.Commit{Schedules: []ledger.Schedule{{Name: name, Updated: time.Now().UTC(), Value: data}}})
}

// DeleteSchedule implements schedule.Store.
func (s scheduleStore) DeleteSchedule(ctx context.Context, name string) error {
	return s.store.Append(ctx, ledger.Commit{Schedules: []ledger.Schedule{{Name: name}}})
}

// storing is the scanner of this machine that keeps what it reads: a firing may wait for hours, and works on the files as they were
// when they fired it.
type storing struct {
	schedule.Folders
	store ledger.Store
}

// Hash implements schedule.Scanner.
func (s storing) Hash(ctx context.Context, w schedule.Watch, paths []string) map[string]schedule.Hash {
	hashes := s.Folders.Hash(ctx, w, paths)
	for p, h := range hashes {
		if h.Err != "" {
			continue
		}
		if err := s.keep(ctx, w.Folder, p, h.SHA256); err != nil {
			h.Err = err.Error()
			hashes[p] = h
		}
	}
	return hashes
}

func (s storing) keep(ctx context.Context, folder, path, want string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // only read
	f, err := root.Open(filepath.FromSlash(path))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	a, err := s.store.PutArtifact(ctx, path, f)
	if err == nil && a.SHA256 != want {
		return apierr.New(apierr.Conflict, "it was written while it was read")
	}
	return err
}
