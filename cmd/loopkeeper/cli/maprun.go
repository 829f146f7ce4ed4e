package cli

import (
	"context"
	"fmt"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// mapAll runs the items in one run.
func (a *app) mapAll(ctx context.Context, c *client, o mapOptions, base map[string]any, items []input) error {
	var out sinks
	if !o.run.detach && !o.run.dryRun { // else nobody is here to write results, and what is in the file stays
		var err error
		if out, err = a.sinkFor(o.to); err != nil {
			return err
		}
	}
	r, err := a.mapRun(ctx, c, o, base, items, out)
	if err := firstError(err, unwrittenOf(r, r.GetId(), out.close())); err != nil || r == nil {
		return err
	}
	return a.conclude(conclusion{runs: []*coordinatorv1.Run{r}, extra: o.extra(out), wrote: out.written()})
}

// mapFirst runs the first few items, shows them and goes on with the rest when the user says so.
func (a *app) mapFirst(ctx context.Context, c *client, o mapOptions, base map[string]any, items []input) error {
	out, err := a.sinkFor(o.to)
	if err != nil {
		return err
	}
	end, err := a.mapBoth(ctx, c, o, base, items, out)
	if closed := out.close(); err == nil && len(end.runs) > 0 {
		last := end.runs[len(end.runs)-1]
		err = unwrittenOf(last, last.GetId(), closed)
	}
	if err != nil || len(end.runs) == 0 {
		return err
	}
	end.extra, end.wrote = o.extra(out), out.written()
	return a.conclude(end)
}

// mapBoth runs the first few items, and the rest when the user says so.
func (a *app) mapBoth(ctx context.Context, c *client, o mapOptions, base map[string]any, items []input, out sinks) (conclusion, error) {
	shown, trial := out, o
	if !o.to.empty() && !a.json() {
		shown = append(sinks{&blockSink{w: a.stderr, style: a.style(a.stderr)}}, out...)
	}
	trial.run.detach = false
	if o.run.key != "" {
		trial.run.key += fmt.Sprintf("-first-%d", o.first)
	}
	first, err := a.mapRun(ctx, c, trial, base, items[:o.first], shown)
	if err != nil {
		return conclusion{}, err
	}
	end := conclusion{runs: []*coordinatorv1.Run{first}}
	rest := len(items) - o.first
	ask := terminal(a.stdin) && terminal(a.stderr)
	if !o.yes && (!ask || !a.askYes(ctx, fmt.Sprintf("Go on with the other %d?", rest))) {
		end.left = rest
		if !a.json() {
			a.note("%d of %d items tried, %d are left", o.first, len(items), rest)
		}
		end.next = []string{a.restCommand(o)}
		return end, nil
	}
	o.to.before = o.first
	second, err := a.mapRun(ctx, c, o, base, items[o.first:], out)
	if second != nil {
		end.runs = append(end.runs, second)
	} else {
		end.runs = nil // it is watched no longer, and how to come back was said
	}
	return end, err
}

// restCommand does what --first left.
func (a *app) restCommand(o mapOptions) string {
	drop, with := []string{"--first=", "--skip=", "--yes"}, []string{"--skip", fmt.Sprint(o.skip + o.first)}
	if o.to.out != "" {
		drop, with = append(drop, "--out="), append(with, "--out", restOf(o.to.out))
	}
	return a.commandWithout(drop, with...)
}

// mapRun runs some items to their end; it returns no run when nobody waits for that.
func (a *app) mapRun(ctx context.Context, c *client, o mapOptions, base map[string]any, items []input, out sinks) (*coordinatorv1.Run, error) {
	bodies, err := a.bodies(ctx, c, items)
	if err != nil {
		return nil, err
	}
	in := map[string]any{"items": bodies}
	for k, v := range base {
		in[k] = v
	}
	keys := make([]string, len(items))
	for i, item := range items {
		keys[i] = item.key
	}
	in["keys"] = keys
	j := job{builtIn: "map", input: in, models: []string{o.model, o.judge}, key: o.run.key, limit: o.run.limit, limits: o.run.limits, place: o.run.place, to: o.to}
	if o.run.dryRun {
		j.long = a.tooLong(ctx, c, o, base, items, bodies)
	}
	id, err := a.start(ctx, c, j, o.run)
	if err != nil || id == "" {
		return nil, err
	}
	if err := out.begin(); err != nil {
		return nil, unwrittenOf(nil, id, err)
	}
	r, err := a.follow(ctx, c, id, &collector{c: c, run: id, sink: out}, o.to)
	if err := unwrittenOf(r, id, firstError(err, out.flush())); err != nil {
		return nil, err
	}
	return r, nil
}

// extra is what the JSON object of the end holds beside the runs: the items, and the files that were left out.
func (o *mapOptions) extra(s sinks) map[string]any {
	out := map[string]any{}
	for k, v := range heldItems(s) {
		out[k] = v
	}
	if files := o.left.all(); len(files) > 0 {
		out["left_out"] = files
	}
	return out
}

// heldItems are the items for the one JSON object of -o json.
func heldItems(s sinks) map[string]any {
	if items := s.held(); items != nil {
		return map[string]any{"items": items}
	}
	return nil
}
