package answers

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// enough is how many like requests in a row make a finding: two may be chance.
const enough = 3

// roundTrips asks whether work on many items cost one request, and finds rows of like requests, one after the other, that could
// have been one batch.
func (r *Record) roundTrips() Check {
	c := Check{Code: RoundTrips, Question: "Did work on N items cost one request, and not N?"}
	var f found
	l := r.links()
	batches, items, calls := 0, 0, 0
	rows := map[string]*row{}
	var order []*row
	for _, st := range r.State.Requests {
		switch {
		case st.Note:
			continue
		case st.Kind == run.KindBatch:
			batches++
			items += len(st.Items)
			continue
		case st.Kind != run.KindGenerate && st.Kind != run.KindEvaluate && st.Kind != run.KindEmbed:
			continue
		}
		calls++
		shape, text, ok := r.shapeOf(st)
		if !ok {
			continue
		}
		if known := rows[shape]; known != nil && known.takes(l, st, text) {
			continue
		}
		w := &row{steps: []int{st.Pos}, kind: st.Kind, model: st.Model, text: text, turn: r.asked[st.Pos].turn, turns: 1}
		rows[shape] = w
		order = append(order, w)
	}
	for _, w := range order {
		if w.turns >= enough {
			f.add("steps %s ask %s for the same (%s) %d times, one after the other: one batch of %d would cost one request", spanOf(w.steps), w.model, w.kind, len(w.steps), len(w.steps))
		}
	}
	c.Findings = f.all()
	c.Answer = fmt.Sprintf("%s of %s cost %s; beside them %s, in %s of the script.", plural(batches, "batch", "batches"), plural(items, "item", "items"),
		plural(batches, "request", "requests"), plural(calls, "single call", "single calls"), plural(r.turns, "turn", "turns"))
	return c
}

// row is like requests in a row.
type row struct {
	steps       []int
	kind, model string
	text        string // the prompt of the last one
	turn, turns int
}

// takes adds a request that is like those before it, unless it rests on one of them.
func (w *row) takes(l *links, st *run.Step, text string) bool {
	if !alike(w.text, text) || w.feeds(l, st) {
		return false
	}
	if asked := l.asked[st.Pos]; asked.turn > w.turn && asked.open == 0 { // not in branches side by side
		w.turn = asked.turn
		w.turns++
	}
	w.steps, w.text = append(w.steps, st.Pos), text
	return true
}

// feeds says whether a request rests on one of the row: by what it holds, or because the script read such a result before it asked.
func (w *row) feeds(l *links, st *run.Step) bool {
	first := w.steps[0]
	for _, k := range l.of(Place{st.Pos, -1}) {
		if k.How != ByOrder && k.To.Step >= first {
			return true
		}
	}
	for pos := w.steps[len(w.steps)-1] + 1; pos < st.Pos; pos++ {
		if l.State.Requests[pos].Kind != run.KindRead {
			continue
		}
		for _, k := range l.of(whole(pos)) {
			if k.How != ByOrder && k.To.Step >= first {
				return true
			}
		}
	}
	return false
}

// shapeOf is what like requests have in common: all but what they are about, and the phase's round. ok is false for a request
// that answers a send-back.
func (r *Record) shapeOf(st *run.Step) (shape, text string, ok bool) {
	fields, is := decode(st.Body).(map[string]any)
	if !is || fields["feedback"] != nil {
		return "", "", false
	}
	text, _ = fields["prompt"].(string)
	for _, own := range []string{"prompt", "item", "label", "subject", "sources", "inputs"} {
		delete(fields, own)
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return "", "", false
	}
	phase := ""
	if m, in := r.phaseAt(st.Pos); in {
		phase = fmt.Sprintf("%s/%s/%d", m.pipeline, m.phase, m.round)
	}
	return strings.Join([]string{st.Kind, phase, string(raw)}, "\n"), text, true
}

// alike says whether two prompts are one template: what they begin and end with in common is at least half of the shorter.
func alike(a, b string) bool {
	if a == b {
		return true
	}
	short := min(len(a), len(b))
	n := 0
	for n < short && a[n] == b[n] {
		n++
	}
	m := 0
	for m < short-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	return n+m >= least && 2*(n+m) >= short
}

// spanOf lists positions, the first and the last where there are many.
func spanOf(list []int) string {
	if len(list) > mostListed {
		return fmt.Sprintf("%d to %d", list[0], list[len(list)-1])
	}
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprint(p))
	}
	return strings.Join(out, ", ")
}
