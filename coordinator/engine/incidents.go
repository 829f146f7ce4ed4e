package engine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// The kinds of incidents.
const (
	IncidentSpilled  = "spilled"  // a model did not end up where it was to be
	IncidentVanished = "vanished" // a model of ours is gone, and nobody here unloaded it
	IncidentOpened   = "opened"   // a node, or a model on it, is not used for a while because calls failed there
	IncidentStuck    = "stuck"    // an unload left its model in memory
	IncidentUse      = "use"      // a person drained, paused or resumed a node, or a pause ended
	IncidentReport   = "report"   // a node reported what cannot be
)

// Incident is something that happened to a node and that no run tells.
type Incident = ledger.Incident

// Incidents returns a node's incidents, newest first, at most limit (0 for all); node "" is every node.
func (e *Engine) Incidents(ctx context.Context, node string, limit int) ([]Incident, error) {
	return e.o.Store.Incidents(ctx, node, limit)
}

// incident notes what happened, for the ledger and the log. What was asked for is no warning.
func (t *turn) incident(node, kind, model, text string) {
	level, more := slog.LevelWarn, []any{"node", node, "kind", kind}
	if kind == IncidentUse || kind == IncidentPulled {
		level = slog.LevelInfo
	}
	if model != "" {
		more = append(more, "model", model)
	}
	t.e.o.Log.Log(context.Background(), level, text, more...)
	t.commit.Incidents = append(t.commit.Incidents, ledger.Incident{Time: t.now, Node: node, Kind: kind, Model: model, Text: text})
}

// guessAfter is how long it may take until what took a model's place shows: while it loads, Ollama lists neither.
const guessAfter = time.Minute

// noteVanished makes incidents of the models that disappeared, as soon as something explains it.
func (t *turn) noteVanished(nodes []scheduler.Node) {
	e := t.e
	e.moves.gone = slices.DeleteFunc(e.moves.gone, func(v vanished) bool {
		var others []string
		for _, n := range nodes {
			if n.ID == v.node.ID {
				others = e.moves.of(n.ID).newcomers(n.Loaded, v.at)
			}
		}
		why := v.guess(e.fleet.Answering(v.node.ID), e.endings[v.node.ID], e.o.KeepAlive, others)
		if why == "" && t.now.Sub(v.at) < guessAfter {
			return false
		}
		t.incident(v.node.ID, IncidentVanished, v.held.Model, fmt.Sprintf("%s is gone from the memory of %s, where it was since %s, and nobody here unloaded it: %s",
			v.held.Model, v.node.Name, v.shown.Local().Format("15:04:05"), cmp.Or(why, v.unexplained())))
		return true
	})
}

// ending is a failure that may have ended runners.
type ending struct {
	at     time.Time
	model  string // that failed
	memory bool   // it ran out of memory
	what   string // for people
}

// kindServerError is a worker's word for what its Ollama calls an internal error, such as a runner that died.
const kindServerError = "server_error"

// noteEnding keeps in mind that a call failed on the server's side, which may explain what is gone.
func (e *Engine) noteEnding(f *flight, failure *run.Failure, now time.Time) {
	switch failure.Kind {
	case run.KindOutOfMemory:
		e.endings[f.node] = ending{now, f.model, true, fmt.Sprintf("a call of %s ran out of memory", f.model)}
	case kindServerError:
		e.endings[f.node] = ending{now, f.model, false, fmt.Sprintf("a call of %s failed (%.200s)", f.model, failure.Message)}
	}
}

// noteLoadEnding does it for a load.
func (e *Engine) noteLoadEnding(node string, m Move, now time.Time) {
	if m.Action == scheduler.Load && apierr.CodeOf(m.Err) == apierr.CannotFit {
		e.endings[node] = ending{now, m.Model, true, fmt.Sprintf("the load of %s ran out of memory", m.Model)}
	}
}

// explains reports whether a failure may have ended a runner. What runs out of memory, or dies of it without saying so, takes its own
// runner with it, and from Ollama 0.30 on every other one.
func (d ending) explains(v vanished) bool {
	if d.at.IsZero() || v.at.Sub(d.at) >= time.Minute {
		return false
	}
	return d.memory || d.model == v.held.Model || scheduler.RuleSet(v.node.OllamaVersion) == scheduler.RulesRunner
}

// guess says why a model of ours may have disappeared, "" when nothing explains it. Nobody tells, so it is a guess from what else
// happened.
func (v vanished) guess(answering time.Time, last ending, keepAlive time.Duration, others []string) string {
	switch {
	case answering.After(v.shown):
		return fmt.Sprintf("its Ollama did not answer, or is another version, until %s, so it was restarted", answering.Local().Format("15:04:05"))
	case last.explains(v):
		return last.what + " there a moment before, at which Ollama ends runners"
	case len(others) > 0:
		return fmt.Sprintf("another program loaded %s, and Ollama made room for it", strings.Join(others, " and "))
	case v.at.Sub(v.keep) >= keepAlive:
		return fmt.Sprintf("nothing asked for it for %s, which is how long Ollama was to keep it", keepAlive)
	default:
		return ""
	}
}

// unexplained says what is left to guess.
func (v vanished) unexplained() string {
	if v.all {
		return "all that was loaded is gone: Ollama was restarted, or its runners ended"
	}
	return "a person or a program unloaded it, or its runner ended"
}
