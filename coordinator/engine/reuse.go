package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/prompts"
)

// takeAtOnce is how many results are taken over in one commit.
const takeAtOnce = 1000

// naming names what a step asks for, so that a later run finds its results: all that a result depends on but the model's digest.
type naming struct {
	request [sha256.Size]byte
	items   [][sha256.Size]byte
	results map[int]run.Content // of items that are checked or judged; the state of a large batch lets go of them at their end
}

// reusable says whether results of a step can be taken over from any earlier run.
func reusable(st *run.Step) bool { return st.Kind == run.KindGenerate || st.Kind == run.KindBatch }

// pinned is what a run has pinned that the results of a step depend on.
type pinned struct {
	Judges  []string          `json:"judges,omitempty"`  // the models of a role can be others in another run
	Prompts map[string]string `json:"prompts,omitempty"` // of the texts that its calls are made with, SHA-256 by name
}

func (a *active) pinned(st *run.Step) pinned {
	p := pinned{Judges: st.Judges, Prompts: map[string]string{}}
	for name, sha := range a.state.Pinned.Prompts {
		if own := strings.HasPrefix(name, "generate_") || strings.HasPrefix(name, "schema_"); own || len(st.Judges) > 0 && strings.HasPrefix(name, "check_") {
			p.Prompts[name] = sha
		}
	}
	return p
}

// namingOf reads the names of a step's items from its request; of lines it has none, because their bodies are not in it. What a step
// says for people, how often it tries and what it holds makes no other request.
func namingOf(body json.RawMessage, beside pinned) (*naming, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	items := []json.RawMessage{fields["item"]}
	if all, ok := fields["items"]; ok {
		items = nil
		if len(all) > 0 && all[0] == '[' {
			if err := json.Unmarshal(all, &items); err != nil {
				return nil, err
			}
		}
	}
	for _, other := range []string{"items", "item", "keys", "uses", "reuse", "retry", "label"} {
		delete(fields, other)
	}
	shared, err := canonical(struct {
		Request map[string]json.RawMessage `json:"request"`
		Pinned  pinned                     `json:"pinned"`
	}{fields, beside})
	if err != nil {
		return nil, err
	}
	n := &naming{request: sha256.Sum256(append([]byte(prompts.Layout+" "), shared...)), results: map[int]run.Content{}}
	for _, item := range items {
		n.items = append(n.items, sha256.Sum256(item))
	}
	return n, nil
}

// name is that of an item's request to a model with a digest, "" when the item has none.
func (n *naming) name(item int, digest string) string {
	if n == nil || item >= len(n.items) {
		return ""
	}
	h := sha256.New()
	h.Write(n.request[:])
	h.Write(n.items[item][:])
	h.Write([]byte(digest))
	return hex.EncodeToString(h.Sum(nil))
}

// acceptance is how the ledger keeps an accepted result: as the event has it, and what made it.
type acceptance struct {
	run.Content
	Node   string     `json:"node,omitempty"`
	Report run.Report `json:"report"`
}

// accept adds the results that an event ends items with to those that later runs may take over, in the same commit.
func (t *turn) accept(a *active, p run.Payload) {
	switch p := p.(type) {
	case *run.AttemptSucceeded:
		n := a.names(p.Pos)
		if n == nil || p.Item >= len(n.items) {
			return
		}
		if p.Phase == run.Work {
			n.results[p.Item] = p.Result
		}
		t.acceptItem(a, n, p.Pos, p.Item, p.Then)
	case *run.ItemChecked:
		if n := a.names(p.Pos); n != nil {
			t.acceptItem(a, n, p.Pos, p.Item, p.Then)
		}
	case *run.AttemptFailed: // of a judge, maybe for good
		if n := a.naming[p.Pos]; n != nil && p.Then == run.ThenFailed {
			delete(n.results, p.Item)
		}
	case *run.StepEnded:
		delete(a.naming, p.Pos)
	}
}

// names are those of a step whose results can be taken over, nil for another.
func (a *active) names(pos int) *naming {
	if n, known := a.naming[pos]; known {
		return n
	}
	var n *naming
	if st := a.state.Step(pos); reusable(st) {
		n, _ = namingOf(st.Body, a.pinned(st)) // it was checked when it became a step
	}
	a.naming[pos] = n
	return n
}

func (t *turn) acceptItem(a *active, n *naming, pos, item int, then run.Then) {
	result := n.results[item]
	if then == run.ThenCheck || then == run.ThenJudge {
		return
	}
	delete(n.results, item)
	st := a.state.Step(pos)
	digest := a.state.Digests[st.MadeBy(item)]
	name := n.name(item, digest)
	if then != run.ThenSucceeded || name == "" || result.Empty() { // a restart in the middle costs the next run a call
		return
	}
	it := &st.Items[item]
	row, err := canonical(acceptance{result, it.Node, run.Report{Model: it.Report.Model, Digest: digest, PromptTokens: it.Report.PromptTokens,
		OutputTokens: it.Report.OutputTokens, TotalNanos: it.Report.Nanos, Simulated: it.Report.Simulated}})
	if err != nil {
		return
	}
	t.commit.Accepted = append(t.commit.Accepted, ledger.Accepted{Request: name, Model: digest, RunID: a.id, Step: pos, Item: item,
		Time: t.now, Result: row, Body: result.Ref})
}

// reuse is a step that looks for results that were accepted before.
type reuse struct {
	pos     int
	body    json.RawMessage
	beside  pinned
	line    run.Line // where its items are, when they are lines
	lines   bool
	items   int
	digests []string // of its models, as far as any is known
}

// reuses says what to look for on behalf of a step, false when it asks for nothing.
func (t *turn) reuses(a *active, st *run.Step) (reuse, bool) {
	var ask struct {
		Reuse bool `json:"reuse"`
	}
	if !reusable(st) || len(st.Items) == 0 || json.Unmarshal(st.Body, &ask) != nil || !ask.Reuse {
		return reuse{}, false
	}
	t.beside = true
	r := reuse{pos: st.Pos, body: st.Body, beside: a.pinned(st), items: len(st.Items)}
	if call, err := a.state.Call(run.AttemptID{Pos: st.Pos, Phase: run.Work}); err == nil && call.Line != nil {
		r.line, r.lines = *call.Line, true
	}
	seen := map[string]bool{}
	for _, model := range st.Models {
		t.digests(a, model, seen)
	}
	r.digests = slices.Sorted(maps.Keys(seen))
	return r, true
}

// digests adds those that a model of the run may have: the one that it has begun with, else any that a machine has.
func (t *turn) digests(a *active, model string, to map[string]bool) {
	if began := a.state.Digests[model]; began != "" {
		to[began] = true
		return
	}
	for _, n := range t.e.fleet.Nodes() {
		for _, m := range n.Models {
			if tagged(m.Name) == tagged(a.uses(model)) {
				to[m.Digest] = true
			}
		}
	}
}

// seek looks up what was accepted before and hands it to the loop, a part at a time; the last part lets the step go.
func (e *Engine) seek(a *active, r reuse) {
	n, err := namingOf(r.body, r.beside)
	if err == nil && r.lines {
		err = e.nameLines(n, r)
	}
	var found []run.Command
	for i := 0; i < r.items && err == nil; i++ {
		var cmd run.Command
		if cmd, err = e.accepted(n, r, i); cmd != nil {
			found = append(found, cmd)
		}
		if len(found) == takeAtOnce {
			e.take(a, found, nil)
			found = nil
		}
	}
	if err != nil && e.ctx.Err() == nil {
		e.o.Log.Warn("earlier results could not be looked up; they are made anew", "run", a.id, "step", r.pos, "err", err)
	}
	e.take(a, found, func() {
		if r.lines && err == nil {
			a.naming[r.pos] = n
		}
		a.release(r.pos)
	})
}

// take hands commands to the loop; after runs there once they are carried out.
func (e *Engine) take(a *active, cmds []run.Command, after func()) {
	e.inbox.put(func(t *turn) {
		for _, cmd := range cmds {
			_ = t.execute(a, cmd) // logged there
		}
		if after != nil {
			after()
			t.spawn(a) // a step that was held back may want a child
		}
		t.place = true
	})
}

// accepted is the newest result that was accepted for an item, nil when there is none.
func (e *Engine) accepted(n *naming, r reuse, item int) (run.Command, error) {
	var best *ledger.Accepted
	for _, digest := range r.digests {
		rows, err := e.o.Store.Accepted(e.ctx, n.name(item, digest), 1)
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 && (best == nil || rows[0].Time.After(best.Time)) {
			best = &rows[0]
		}
	}
	if best == nil {
		return nil, nil
	}
	var was acceptance
	if err := json.Unmarshal(best.Result, &was); err != nil || was.Empty() {
		return nil, err
	}
	return run.Reuse{Pos: r.pos, Item: item, From: run.From{Run: best.RunID, Pos: best.Step, Item: best.Item}, Result: was.Content, Node: was.Node,
		Report: was.Report}, nil
}

// nameLines names items that are lines of an artifact, which takes a look at each: where one is, the index says.
func (e *Engine) nameLines(n *naming, r reuse) error {
	index, err := e.o.Bodies.ReadArtifactAt(e.ctx, r.line.Index, 0, (r.items+1)*8)
	if err != nil {
		return err
	}
	if len(index) != (r.items+1)*8 {
		return errors.New("the index of the lines is too short")
	}
	for i := range r.items {
		from, to := binary.BigEndian.Uint64(index[i*8:]), binary.BigEndian.Uint64(index[i*8+8:])
		line, err := e.o.Bodies.ReadArtifactAt(e.ctx, r.line.Ref, int64(from), int(to-from))
		if err != nil {
			return err
		}
		for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
			line = line[:len(line)-1]
		}
		n.items = append(n.items, sha256.Sum256(line))
	}
	return nil
}

// hold keeps a step from being placed while it may take results over.
func (a *active) hold(pos int) { a.adopting[pos]++ }

// release lets it go.
func (a *active) release(pos int) {
	if a.adopting[pos]--; a.adopting[pos] <= 0 {
		delete(a.adopting, pos)
	}
}
