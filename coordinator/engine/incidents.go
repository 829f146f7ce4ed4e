package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
)

// The kinds of incidents.
const (
	IncidentSpilled  = "spilled"  // a model did not end up where it was to be
	IncidentVanished = "vanished" // a model of ours is gone, and nobody here unloaded it
	IncidentOpened   = "opened"   // a node, or a model on it, is not used for a while because calls failed there
	IncidentStuck    = "stuck"    // an unload left its model in memory
	IncidentUse      = "use"      // a person drained, paused or resumed a node
)

// Incident is something that happened to a node and that no run tells.
type Incident = ledger.Incident

// Incidents returns a node's incidents, newest first, at most limit (0 for all); node "" is every node.
func (e *Engine) Incidents(ctx context.Context, node string, limit int) ([]Incident, error) {
	return e.o.Store.Incidents(ctx, node, limit)
}

// incident notes what happened, for the ledger and the log.
func (t *turn) incident(node, kind, model, text string) {
	t.e.o.Log.Warn("an incident", "node", node, "kind", kind, "model", model, "text", text)
	t.commit.Incidents = append(t.commit.Incidents, ledger.Incident{Time: t.now, Node: node, Kind: kind, Model: model, Text: text})
}

// noteVanished makes incidents of the models that disappeared since the last look.
func (t *turn) noteVanished() {
	e := t.e
	for _, v := range e.moves.gone {
		text := fmt.Sprintf("%s is gone from the memory of %s, where it was since %s, and nobody here unloaded it: %s", v.held.Model, v.node.Name,
			v.shown.Local().Format("15:04:05"), v.guess(e.fleet.Answering(v.node.ID), e.lastOOM[v.node.ID], e.o.KeepAlive, t.now))
		t.incident(v.node.ID, IncidentVanished, v.held.Model, text)
	}
	e.moves.gone = nil
}

// guess says why a model of ours may have disappeared. Nobody tells, so it is a guess from what else happened.
func (v vanished) guess(answering, outOfMemory time.Time, keepAlive time.Duration, now time.Time) string {
	switch {
	case answering.After(v.shown):
		return fmt.Sprintf("its Ollama did not answer, or is another version, until %s, so it was restarted", answering.Local().Format("15:04:05"))
	case !outOfMemory.IsZero() && now.Sub(outOfMemory) < time.Minute:
		return "a call there ran out of memory a moment ago, at which Ollama ends runners"
	case len(v.others) > 0:
		return fmt.Sprintf("another program loaded %s, and Ollama made room for it", strings.Join(v.others, " and "))
	case now.Sub(v.keep) >= keepAlive:
		return fmt.Sprintf("nothing asked for it for %s, which is how long Ollama was to keep it", keepAlive)
	case v.all:
		return "all that was loaded is gone: Ollama was restarted, or its runners ended"
	default:
		return "a person or a program unloaded it, or its runner ended"
	}
}
