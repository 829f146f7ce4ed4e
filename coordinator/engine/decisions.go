package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// mostWhy bounds a decision's reason in the ledger, bytes. A fleet so large that its reasons are longer shows fewer machines.
const mostWhy = 16 << 10

// decided keeps which decisions of a step were recorded, so that each kind is recorded once and not for every item.
type decided struct {
	waits scheduler.WaitFor // what it was said to wait for last
	seen  map[string]bool   // placements
}

// recordDecision keeps a decision on an item as it was taken: the first of its kind, and a wait when what is waited for changes.
func (t *turn) recordDecision(a *active, pos, item int, d scheduler.Decision) {
	rec := a.decided[pos]
	if rec == nil {
		rec = &decided{seen: map[string]bool{}}
		a.decided[pos] = rec
	}
	if d.Action == scheduler.Wait {
		if d.Why.Wait == rec.waits {
			return
		}
		rec.waits = d.Why.Wait
	} else if sign := signature(d); rec.seen[sign] {
		return
	} else if rec.seen[sign] = true; len(rec.seen) > ledger.DecisionsKept {
		clear(rec.seen)
	}
	t.commit.Decisions = append(t.commit.Decisions, ledger.Decision{RunID: a.state.Pinned.ID, Step: pos, Item: item, Time: t.now,
		Action: string(d.Action), Node: d.Node, Why: bounded(d)})
}

// signature is what makes a placement another one: what was decided, where, and how each machine looked, without the numbers.
func signature(d scheduler.Decision) string {
	var b strings.Builder
	b.WriteString(string(d.Action))
	b.WriteString(d.Node)
	for _, n := range d.Why.Nodes {
		b.WriteByte(' ')
		b.WriteString(n.Node)
		b.WriteString(string(n.Verdict))
	}
	return b.String()
}

// bounded is a decision's reason as JSON, with the machines that matter most when it gets long.
func bounded(d scheduler.Decision) json.RawMessage {
	why := d.Why
	for {
		raw, err := json.Marshal(why)
		if err == nil && len(raw) <= mostWhy || len(why.Nodes) == 0 {
			return raw
		}
		keep := len(why.Nodes) / 2
		nodes := slices.Clone(why.Nodes)
		slices.SortStableFunc(nodes, func(a, b scheduler.NodeVerdict) int { return weight(a) - weight(b) })
		why.Nodes = nodes[:keep]
		why.Summary = fmt.Sprintf("%s (%d of %d machines are shown)", d.Why.Summary, keep, len(d.Why.Nodes))
	}
}

// weight orders verdicts by how much they say about a decision.
func weight(v scheduler.NodeVerdict) int {
	switch v.Verdict {
	case scheduler.VerdictChosen:
		return 0
	case scheduler.VerdictFits:
		return 1
	case scheduler.VerdictWait:
		return 2
	default:
		return 3
	}
}

// Decisions returns the decisions on a run as they were taken, of one step or of all with step -1, oldest first: of each step the
// newest few that differ. NotFound: there is no such run or step.
func (e *Engine) Decisions(ctx context.Context, id string, step int) ([]Explanation, error) {
	id, err := e.Resolve(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := e.showBeside(ctx); err != nil {
		return nil, err
	}
	rows, err := e.o.Store.Decisions(ctx, id, step)
	if err != nil {
		return nil, err
	}
	return with(ctx, e, id, func(s *run.State, _ *active) ([]Explanation, error) {
		if step >= 0 && s.Step(step) == nil {
			return nil, noSuchStep(s, step)
		}
		out := make([]Explanation, len(rows))
		for i, r := range rows {
			x := Explanation{At: r.Time, Action: scheduler.Action(r.Action), Node: r.Node}
			if err := json.Unmarshal(r.Why, &x.Explanation); err != nil {
				return nil, apierr.Wrap(err, apierr.LedgerCorrupt, "read a decision on step %d of run %s", r.Step, id)
			}
			if st := s.Step(r.Step); st != nil && r.Item < len(st.Items) {
				x.Subject = itemName(st, r.Item)
			}
			out[i] = x
		}
		return out, nil
	})
}
