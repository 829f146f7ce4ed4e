package script

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// world answers a script as a run would, in a random order and with random outcomes.
type world struct {
	rng      *rand.Rand
	open     map[int]Request
	schemas  map[int]any  // of batches, by position
	rejected map[int]bool // steps of a phase that a person rolled back
	checks   []Delivery   // asked, and not answered yet
	kinds    map[string]bool
	phases   phaseMachine
}

// phaseMachine is what coordinator/run does with `phase` requests, in short.
type phaseMachine struct {
	order   []string
	current int
	rounds  map[string]int
	since   int // position of the request that began the phase
	backs   int
	rolled  bool // a person went back, and the script has not asked since
	reasons []map[string]string
}

// heard takes in what the script did.
func (w *world) heard(y Yield) {
	for _, r := range y.Requests {
		w.kinds[r.Kind] = true
		if r.Note {
			continue
		}
		w.open[r.Pos] = r
		if w.phases.rolled && r.Kind != "phase" {
			w.reject(r.Pos)
		}
	}
	for _, c := range y.Checks {
		w.kinds["check"] = true
		w.checks = slices.DeleteFunc(w.checks, func(d Delivery) bool { return d.Pos == c.Pos && d.Item == c.Item })
	}
}

func (w *world) reject(pos int) {
	if w.rejected == nil {
		w.rejected = map[int]bool{}
	}
	w.rejected[pos] = true
}

// next settles a random open request, or asks a check of it first.
func (w *world) next() Delivery {
	if w.phases.current > 0 && !w.phases.rolled && w.phases.backs < 2 && w.rng.IntN(3) == 0 {
		w.rollBack()
	}
	positions := make([]int, 0, len(w.open))
	for pos := range w.open {
		if !slices.ContainsFunc(w.checks, func(d Delivery) bool { return d.Pos == pos }) {
			positions = append(positions, pos)
		}
	}
	slices.Sort(positions)
	r := w.open[positions[w.rng.IntN(len(positions))]]
	if w.rejected[r.Pos] {
		return w.settle(Delivery{Pos: r.Pos, Err: &CallError{Kind: "rolled_back", Message: "the phase was rolled back", Step: r.Pos}})
	}
	var body map[string]any
	_ = json.Unmarshal(r.Body, &body) // the script's requests are JSON
	if body["check"] == true && w.rng.IntN(2) == 0 {
		d := Delivery{Pos: r.Pos, Check: true, Item: w.rng.IntN(3), Value: w.value(r, body, true)}
		w.checks = append(w.checks, d)
		return d
	}
	if failing := w.rng.IntN(8) == 0; failing && (r.Kind == "generate" && body["prompt"] == "last" || r.Kind == "spawn") && body["detached"] == nil {
		if r.Kind == "generate" {
			return w.settle(Delivery{Pos: r.Pos, Err: &CallError{Kind: "empty_turn", Message: "nothing came", Step: r.Pos}})
		}
	}
	return w.settle(Delivery{Pos: r.Pos, Value: w.value(r, body, false)})
}

func (w *world) settle(d Delivery) Delivery {
	delete(w.open, d.Pos)
	return d
}

// value is what a step delivers, or what its check is asked about.
func (w *world) value(r Request, body map[string]any, checked bool) json.RawMessage {
	schema := body["schema"]
	ref := map[string]any{"ref": fmt.Sprint("r", r.Pos), "name": "n", "bytes": w.rng.IntN(3), "facts": map[string]any{"node": "a", "model": "m"}}
	var v any
	switch r.Kind {
	case "generate":
		if v = any(ref); schema != nil {
			v = w.sample(schema)
		}
	case "batch":
		_, lines := body["items"].(map[string]any)
		w.schemas[r.Pos] = schema
		switch {
		case checked && schema == nil:
			v = ref
		case checked:
			v = w.sample(schema)
		case lines:
			v = map[string]any{"total": 5000, "succeeded": 4998, "failed": 2, "coverage": 0.9996, "handle": r.Pos}
		default:
			v = w.report(schema)
		}
	case "page":
		from := int(body["from"].(float64))
		v = map[string]any{"items": w.items(from, 2, w.schemas[int(body["step"].(float64))]), "next": []any{from + 2, nil}[min(from/4, 1)]}
	case "plan":
		v = map[string]any{"outcome": "plan", "note": "n", "questions": []any{}, "order": []any{"s1"}, "steps": []any{map[string]any{"id": "s1", "parts": []any{"g1"},
			"instruction": "i", "worker": "write", "reads": []any{}, "writes": []any{}, "after": []any{}, "depends_on": []any{}, "done_when": []any{"d"}, "each": "", "why": map[string]any{}}}}
	case "evaluate":
		v = map[string]any{"verdict": []string{"passed", "passed", "needs_human"}[w.rng.IntN(3)], "rule": "all_met", "reasons": []any{"r"},
			"facts": []any{map[string]any{"criterion": "c", "quote": "q", "in": "subject", "line": 1}}, "opinions": []any{}, "criteria": []any{}, "judges": []any{}}
	case "embed":
		v = map[string]any{"vectors": slices.Repeat([]any{[]any{0.5, w.rng.Float64()}}, len(body["inputs"].([]any)))}
	case "read":
		v = []any{"abc", "a text of far more than ten words, which is what one of the examples has to make shorter"}[w.rng.IntN(2)]
	case "approve":
		v = map[string]any{"outcome": []string{"approved", "approved", "rejected"}[w.rng.IntN(3)], "by": "ann", "comment": "", "timed_out": false}
	case "question":
		answer := any("yes")
		if choices, ok := body["choices"].([]any); ok {
			answer = choices[w.rng.IntN(max(1, len(choices)-1))] // the last one is to stop
		}
		v = map[string]any{"answer": answer, "by": "ann", "timed_out": false}
	case "tool":
		v = map[string]any{"next": []any{nil, "t" + fmt.Sprint(r.Pos)}[w.rng.IntN(2)], "body": ref, "path": "p",
			"items": []any{map[string]any{"path": "p", "kind": "file"}, map[string]any{"kind": "folder", "path": "q"}}}
	case "spawn":
		v = map[string]any{"state": []string{"completed", "failed"}[w.rng.IntN(2)], "run": fmt.Sprint("run", r.Pos), "outputs": map[string]any{"z": 1, "b": 2}, "coverage": 1, "failures": []any{}, "shortfalls": []any{}}
	case "phase":
		v = w.phases.move(r.Pos, body)
	}
	text, _ := marshal(v) // made of JSON's own types above
	return text
}

// sample is a value of a schema.
func (w *world) sample(schema any) any {
	s, _ := schema.(map[string]any)
	if values, ok := s["enum"].([]any); ok {
		return values[w.rng.IntN(len(values))]
	}
	switch s["type"] {
	case "object":
		object := map[string]any{}
		properties := s["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if slices.Contains(s["required"].([]any), any(name)) || w.rng.IntN(4) == 0 {
				object[name] = w.sample(properties[name])
			}
		}
		return object
	case "array":
		list := make([]any, w.rng.IntN(3))
		for i := range list {
			list[i] = w.sample(s["items"])
		}
		return list
	case "boolean":
		return w.rng.IntN(2) == 0
	case "integer":
		return w.rng.IntN(12)
	default:
		return fmt.Sprint("text ", w.rng.IntN(9))
	}
}

func (w *world) report(schema any) any {
	items := w.items(0, 3, schema)
	succeeded := 0
	for _, item := range items {
		if item.(map[string]any)["status"] == "succeeded" {
			succeeded++
		}
	}
	return map[string]any{"items": items, "total": 3, "succeeded": succeeded, "failed": 3 - succeeded, "coverage": float64(succeeded) / 3}
}

func (w *world) items(from, count int, schema any) []any {
	var items []any
	for i := from; i < from+count; i++ {
		item := map[string]any{"index": i, "key": fmt.Sprint("k", i), "status": "succeeded", "value": w.sample(schema)}
		if schema == nil {
			item = map[string]any{"index": i, "key": fmt.Sprint("k", i), "status": "succeeded", "ref": fmt.Sprint("r", i), "bytes": 3}
		}
		if w.rng.IntN(2) == 0 {
			item = map[string]any{"status": "failed", "key": fmt.Sprint("k", i), "index": i, "failure": map[string]any{"message": "m", "kind": "sent_back"}}
		}
		items = append(items, item)
	}
	return items
}

// rollBack is a person who goes back to the first phase.
func (w *world) rollBack() {
	for pos, r := range w.open {
		if pos > w.phases.since && r.Kind != "phase" {
			w.reject(pos)
		}
	}
	w.checks = slices.DeleteFunc(w.checks, func(d Delivery) bool { return w.rejected[d.Pos] })
	p := &w.phases
	p.rolled = true
	p.backs++
	p.enter(0, map[string]string{"from": p.order[p.current], "reason": "other goal", "by": "ann"})
}

func (p *phaseMachine) enter(phase int, reasons ...map[string]string) {
	p.current, p.reasons = phase, reasons
	if phase < len(p.order) {
		p.rounds[p.order[phase]]++
	}
}

func (p *phaseMachine) move(pos int, body map[string]any) any {
	if names, first := body["phases"].([]any); first {
		for _, name := range names {
			p.order = append(p.order, name.(string))
		}
		p.rounds = map[string]int{}
		p.enter(0)
	}
	done, ended := body["done"].(map[string]any)
	if p.rolled {
		p.rolled, ended = false, false
	}
	switch {
	case !ended:
	case done["outcome"] == "passed":
		p.enter(p.current + 1)
	case done["outcome"] == "sent_back":
		p.enter(slices.Index(p.order, done["target"].(string)), map[string]string{"from": p.order[p.current], "reason": fmt.Sprint(done["reason"]), "by": ""})
	}
	p.since = pos
	if p.current == len(p.order) {
		p.current = 0 // nothing to go back to any more
		p.backs = 2
		return map[string]any{"phase": nil, "round": 1, "reasons": []any{}}
	}
	name := p.order[p.current]
	return map[string]any{"phase": name, "round": p.rounds[name], "reasons": p.reasons}
}
