package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

type pruneOptions struct {
	older string
	kinds []string
	dry   bool
	yes   bool
}

func newPrune(a *app) *cobra.Command {
	var o pruneOptions
	c := &cobra.Command{
		Use: "prune --older AGE", Short: "Drop the bodies of old runs and keep the facts", Args: cobra.NoArgs,
		Long: "Drop bodies of runs that ended longer ago than AGE, and keep the facts: events, outcomes, hashes, sizes. It says first what goes and what " +
			"can no longer be done then, and asks; --dry-run leaves it at that. What a younger run names too stays.\n\n" +
			"KINDS are prompts, replies, thinking, texts (results that are too large for their event) and inputs; without --kinds it is the first three, " +
			"without which a run can still be replayed.",
		Example: "  loopkeeper prune --older 30d --dry-run\n  loopkeeper prune --older 30d --kinds prompts,replies --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			age, err := parseAge(o.older)
			if err != nil {
				return err
			}
			if o.dry && o.yes {
				return usagef("--dry-run and --yes exclude each other")
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.prune(ctx, c, age, o) })
		},
	}
	c.Flags().StringVar(&o.older, "older", "", "`AGE` since the end of a run, such as 30d, 12h or 90m")
	c.Flags().StringSliceVar(&o.kinds, "kinds", nil, "`KINDS` of bodies, with commas between them")
	c.Flags().BoolVar(&o.dry, "dry-run", false, "only say what would go")
	c.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	return c
}

// parseAge reads 30d as well as what Go calls a duration.
func parseAge(text string) (time.Duration, error) {
	if text == "" {
		return 0, usagef("--older is missing: say how old a run has to be, such as 30d")
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 36500 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d, nil
	}
	return 0, usagef("--older %q: want an age such as 30d, 12h or 90m", text)
}

func (a *app) prune(ctx context.Context, c *client, age time.Duration, o pruneOptions) error {
	q := &coordinatorv1.PruneRequest{OlderSeconds: int64(age / time.Second), Kinds: o.kinds, DryRun: true}
	done := a.slow("looking for what may go")
	r, err := c.records().Prune(ctx, q)
	done()
	if err != nil {
		return err
	}
	if o.dry || r.GetBodies() == 0 {
		return a.pruned(r, true)
	}
	if !o.yes {
		if a.json() || !terminal(a.stdin) {
			return usageError{error: fmt.Errorf("what is dropped does not come back: nobody is there to be asked"), next: []string{
				a.commandWithout(nil, "--dry-run"), a.commandWithout(nil, "--yes")}}
		}
		if err := a.pruned(r, true); err != nil {
			return err
		}
		if !a.askYes(ctx, "Drop them? They do not come back.") {
			a.note("nothing was dropped")
			return nil
		}
	}
	q.DryRun = false
	done = a.slow("dropping; runs go on meanwhile")
	r, err = c.records().Prune(ctx, q)
	done()
	if err != nil {
		return err
	}
	return a.pruned(r, false)
}

func (a *app) pruned(r *coordinatorv1.PruneResponse, dry bool) error {
	if a.json() {
		m := ui.Plain(r)
		m["dry_run"] = dry
		return a.printJSON(m)
	}
	l := &labelled{width: a.style(a.stdout).Width}
	verb := "dropped"
	if dry {
		verb = "would go"
	}
	l.text(fmt.Sprintf("%s: %s of %s, %s bytes\n", verb, ui.Plural(r.GetBodies(), "body", "bodies"), ui.Plural(r.GetRuns(), "run", "runs"), ui.Count(r.GetBytes())))
	for _, d := range r.GetDropped() {
		l.add("  ", d.GetKind(), ui.Plural(d.GetBodies(), "body", "bodies")+", "+ui.Count(d.GetBytes())+" bytes")
	}
	if n := r.GetShared(); n > 0 {
		l.add("  ", "stay", ui.Plural(n, "body", "bodies")+", because something that is kept names them too")
	}
	for _, lost := range r.GetLost() {
		l.add("  ", "then", lost)
	}
	if !dry && r.GetDiskBefore() > 0 {
		l.add("  ", "disk", ui.Count(r.GetDiskBefore())+" bytes before, "+ui.Count(r.GetDiskAfter())+" after")
	}
	return a.printText(l.String())
}
