// Package answers says what a run's record means: on what basis something came to be, what the record should show and does not,
// and what happened as a tree or over time. Everything is computed from events; there is no I/O and no clock here, and no body
// is opened: bodies are told apart by their hashes.
package answers

import (
	"encoding/json"
	"iter"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// Events are a run's events in order, and can be gone through more than once.
type Events iter.Seq2[run.Event, error]

// Record is a run folded from its events, with the little beyond its state that the answers need.
type Record struct {
	State *run.State

	asked  []asking // by position, notes too
	turns  int      // of the script: how often it asked for something after it was given something
	failed []failing
	moves  []phaseMove
	made   map[string][]Place // by the hash of a result's body: what made it, the first few
	bare   []Place            // items that a judge passed without a fact
	passed int                // verdicts that passed
	books  *run.Acceptance    // once it was asked for
}

// Place is a step, or with Item 0 or more one item of it. Step -1 is what was handed in.
type Place struct{ Step, Item int }

// whole is a step as such.
func whole(pos int) Place { return Place{pos, -1} }

// asking is how a request came about.
type asking struct {
	turn  int   // of the script
	after int   // the step that was delivered last before it, -1 for none
	open  int   // steps that were open when the turn began
	seq   int64 // its event
	ended int64 // the event of its end, 0 while it is open
}

// failing is an attempt that failed.
type failing struct {
	id          run.AttemptID
	kind        string
	node        string
	prompt, raw string
}

// phaseMove is where a pipeline's pointer moved.
type phaseMove struct {
	pos      int
	pipeline string
	phase    string // in progress from pos on, "" for none
	round    int
}

// Fold reads a record.
func Fold(events Events) (*Record, error) {
	r := &Record{State: &run.State{}, made: map[string][]Place{}}
	f := folding{Record: r, last: -1, delivered: true}
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if err := run.Apply(r.State, e); err != nil {
			return nil, err
		}
		f.order(e)
		r.note(e)
	}
	return r, nil
}

// folding is what is known in the middle of a fold.
type folding struct {
	*Record
	last      int  // the step that was delivered last
	given     int  // deliveries so far
	delivered bool // something was delivered since the script asked last
	open      int  // steps without an end
	before    int  // and how many there were when this turn began
}

// order notes when what was asked for and what had been given by then.
func (f *folding) order(e run.Event) {
	s := f.State
	if n := len(s.Requests); n > len(f.asked) {
		if f.delivered {
			f.turns, f.before, f.delivered = f.turns+1, f.open, false
		}
		for _, st := range s.Requests[len(f.asked):] {
			f.asked = append(f.asked, asking{turn: f.turns, after: f.last, open: f.before, seq: e.Seq})
			if !st.Note {
				f.open++
			}
		}
	}
	if p, ok := e.Data.(*run.StepEnded); ok {
		f.asked[p.Pos].ended = e.Seq
		f.open--
	}
	if n := len(s.Deliveries); n > f.given {
		f.last, f.given, f.delivered = s.Deliveries[n-1].Pos, n, true
	}
}

// note keeps what the state does not.
func (r *Record) note(e run.Event) {
	if c, ok := run.ResultOf(e.Data); ok && c.Ref != "" {
		r.keep(e.Data, c.Ref)
	}
	switch p := e.Data.(type) {
	case *run.AttemptFailed:
		r.failed = append(r.failed, failing{id: p.AttemptID, kind: p.Cause.Kind, node: p.Node, prompt: p.Prompt, raw: p.Raw})
	case *run.AttemptSucceeded:
		if p.Phase == run.Judge {
			r.noteVerdict(Place{p.Pos, p.Item}, p.Concluded())
		} else if st := r.State.Step(p.Pos); st != nil && st.Kind == run.KindEvaluate {
			r.noteVerdict(Place{p.Pos, p.Item}, p.Concluded())
		}
	case *run.PhaseMoved:
		m := phaseMove{pos: p.Pos, pipeline: p.Pipeline, phase: p.To}
		if pl := r.State.Pipeline(p.Pipeline); pl != nil && pl.Phase() != nil {
			m.round = pl.Phase().Round
		}
		r.moves = append(r.moves, m)
	}
}

// mostMakers bounds how many makers of one body are kept: models that say "yes" say it often.
const mostMakers = 64

// keep notes what made a body.
func (r *Record) keep(p run.Payload, sha string) {
	var at Place
	switch p := p.(type) {
	case *run.AttemptSucceeded:
		if p.Phase == run.Judge {
			return
		}
		at = Place{p.Pos, p.Item}
	case *run.ItemReused:
		at = Place{p.Pos, p.Item}
	case *run.ItemResolved:
		at = Place{p.Pos, p.Item}
	case *run.StepEnded:
		at = whole(p.Pos)
	}
	if st := r.State.Step(at.Step); st == nil || st.Kind == run.KindRead {
		return
	}
	if list := r.made[sha]; len(list) < mostMakers {
		r.made[sha] = append(list, at)
	}
}

func (r *Record) noteVerdict(at Place, verdict json.RawMessage) {
	v, ok := readVerdict(verdict)
	if !ok || v.Verdict != "passed" {
		return
	}
	r.passed++
	if len(v.Facts) == 0 {
		r.bare = append(r.bare, at)
	}
}

// phaseAt is the phase that position pos belongs to; ok is false outside a pipeline.
func (r *Record) phaseAt(pos int) (m phaseMove, ok bool) {
	for _, move := range r.moves {
		if move.pos > pos {
			break
		}
		m, ok = move, move.phase != ""
	}
	return m, ok
}

// together says whether two steps were open at the same time.
func (r *Record) together(a, b int) bool {
	if a > b {
		a, b = b, a
	}
	end := r.asked[a].ended
	return end == 0 || end > r.asked[b].seq
}

// acceptance is what was expected against what was done.
func (r *Record) acceptance() *run.Acceptance {
	if r.books == nil {
		r.books = r.State.Acceptance()
	}
	return r.books
}
