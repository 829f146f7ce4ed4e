package pull

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Auto downloads by itself what pays, one model at a time.
type Auto struct {
	Puller  *Puller
	Suggest func(context.Context) ([]Suggestion, error)
	// Note tells a machine's incidents what was done, and why.
	Note func(ctx context.Context, node, model, text string)
	Log  *slog.Logger
}

const (
	// autoPause is how long a suggestion has to hold before it is followed: a queue may be gone in a moment.
	autoPause = 30 * time.Second
	// autoRetry is how long a download that failed is not tried again.
	autoRetry = 6 * time.Hour
)

// Run works until ctx ends.
func (a Auto) Run(ctx context.Context) {
	tick := time.NewTicker(autoPause)
	defer tick.Stop()
	held := map[job]bool{} // suggested at the last look
	failed := map[job]time.Time{}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		list, err := a.Suggest(ctx)
		if err != nil {
			if ctx.Err() == nil {
				a.Log.Warn("no downloads are suggested", "error", err)
			}
			continue
		}
		before := held
		held = map[job]bool{}
		for _, s := range list {
			j := job{s.Node, s.Model}
			held[j] = true
			if before[j] && time.Since(failed[j]) > autoRetry {
				if !a.follow(ctx, s) {
					failed[j] = time.Now()
				}
				break // the queues are others by now
			}
		}
	}
}

// follow makes one download.
func (a Auto) follow(ctx context.Context, s Suggestion) bool {
	a.Note(ctx, s.Node, s.Model, fmt.Sprintf("%s is being downloaded to %s: %s", s.Model, s.Name, s.Why))
	err := a.Puller.Pull(ctx, s.Node, s.Model, func(Progress) {})
	switch {
	case ctx.Err() != nil:
		return true
	case err != nil:
		a.Note(ctx, s.Node, s.Model, fmt.Sprintf("%s was not downloaded to %s: %v", s.Model, s.Name, err))
		return false
	default:
		a.Note(ctx, s.Node, s.Model, fmt.Sprintf("%s has %s now", s.Name, s.Model))
		return true
	}
}
