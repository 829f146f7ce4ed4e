package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Pins are what every new run is given to keep beside its script, so that a replay, a fork and an export of it have the same. A child
// has its parent's, a fork its base's.
type Pins struct {
	// Roles are the models that play each role, in order of preference.
	Roles map[string][]run.RoleModel
	// Prompts are the texts that models are given, by name; nil pins none.
	Prompts map[string]string
	// Judges returns what is known of judges now; nil: nothing is. It may be called from several goroutines.
	Judges func(context.Context) ([]run.Calibrated, error)
}

// pinSettings gives a run what the settings and the ledger say at this moment.
func (e *Engine) pinSettings(ctx context.Context, c *run.Created) error {
	c.Roles = e.o.Pins.Roles
	if texts := e.o.Pins.Prompts; len(texts) > 0 {
		c.Prompts = make(map[string]string, len(texts))
		if err := e.keepPrompts(ctx, texts, c.Prompts); err != nil {
			return apierr.Wrap(err, apierr.Unavailable, "store the prompts")
		}
	}
	if e.o.Pins.Judges == nil {
		return nil
	}
	judges, err := e.o.Pins.Judges(ctx)
	c.Judges = judges
	return err
}

// keepPrompts names each text by its hash, and stores those that are not there, in one commit.
func (e *Engine) keepPrompts(ctx context.Context, texts, named map[string]string) error {
	var missing []ledger.Body
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		body := []byte(texts[name])
		named[name] = ledger.Digest(body)
		has, err := e.o.Store.HasArtifact(ctx, named[name])
		if err != nil {
			return err
		}
		if !has {
			missing = append(missing, ledger.Body{Name: "prompt " + name, Data: body})
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return e.o.Store.Append(ctx, ledger.Commit{Bodies: missing})
}
