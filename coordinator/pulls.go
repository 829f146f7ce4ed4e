package coordinator

import (
	"context"
	"maps"
	"slices"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/pull"
)

// PullPolicy is what to do about a download that would pay.
type PullPolicy string

// The policies; the zero value is PullAsk.
const (
	PullAsk   PullPolicy = "ask"   // it is shown, with the command
	PullAuto  PullPolicy = "auto"  // it is made
	PullNever PullPolicy = "never" // nothing is said
)

// suggester finds downloads that would pay; nil when nobody wants to know.
func (c *Coordinator) suggester() func(context.Context) ([]pull.Suggestion, error) {
	if c.o.Pulls == PullNever {
		return nil
	}
	return func(ctx context.Context) ([]pull.Suggestion, error) {
		queues, err := c.engine.Queue(ctx)
		if err != nil || len(queues) == 0 {
			return nil, err
		}
		waiting := map[string]int{}
		for _, q := range queues {
			waiting[q.Model] = q.Waiting
		}
		snap, err := c.engine.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		return pull.Suggest(snap, c.o.limits(), waiting, c.pulls.Rate), nil
	}
}

// startAuto has downloads that pay made by themselves, where that is the policy, until end is called.
func (c *Coordinator) startAuto(ctx context.Context) {
	ctx, c.end = context.WithCancel(context.WithoutCancel(ctx))
	if c.o.Pulls != PullAuto {
		return
	}
	log := c.o.Log.With("part", "pull")
	a := pull.Auto{Puller: c.pulls, Suggest: c.suggester(), Log: log, Note: func(ctx context.Context, node, model, text string) {
		if err := c.engine.Note(ctx, node, engine.IncidentPulled, model, text); err != nil && ctx.Err() == nil {
			log.Warn("an incident was not noted", "error", err)
		}
	}}
	c.auto.Go(func() { a.Run(ctx) })
}

// settings are the nodes that the settings say something about.
func (o Options) settings() []string {
	names := map[string]bool{}
	for name := range o.Nodes {
		names[name] = true
	}
	for name := range o.Hours {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
