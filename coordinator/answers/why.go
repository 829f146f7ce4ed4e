package answers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// Basis is one link of a reason: what, made by which step from what, and who accepted it. Facts are what code verified or
// recorded; opinions are what a model said and code could not verify.
type Basis struct {
	Subject   string
	Step      int // -1 for what was handed in, and for an output
	Item      int // -1 for a step as a whole
	Key       string
	Kind      string // of the step; "output", or "input" for what was handed in
	State     string
	Node      string // id
	Model     string
	Digest    string
	Time      time.Time
	Attempts  int
	Tries     []string // one sentence for each
	Inputs    []string
	Bodies    []Body
	Verdict   string
	Judged    string // the verdict in a sentence: by whom, with what is known of each, and by which rule
	Facts     []string
	Opinions  []string
	Reasons   []string
	From      []string // subjects of the links it rests on
	Depth     int
	Simulated bool

	more int // things that it rests on, and does not name
}

// Body is a body that a link rests on. Who opens the ledger fills in what became of it.
type Body struct {
	SHA256 string
	Name   string // what it is: prompt, reply, thinking, result, input
	Bytes  int64  // 0 when it is not known
	Gone   string // why it cannot be opened, "" when it can
}

// Reason is why something is as it is: the subject first, then what that rests on, back to what was handed in.
type Reason struct {
	Bases []Basis
	Notes []string

	judged, made *Place           // whom to ask: the step that judged, else the one that made it
	calls        map[callKey]call // the last of each
}

// callKey is a place's work or its judgement.
type callKey struct {
	Place
	phase run.Phase
}

// call is what one call of a model was given and gave.
type call struct{ model, node, prompt, reply string }

// Names are the names of nodes by id; an id without one stands for itself.
type Names map[string]string

func (n Names) of(id string) string {
	if name := n[id]; name != "" {
		return name
	}
	return id
}

// mostLinks bounds a reason: what is left out is said.
const mostLinks = 200

// mostNamed is how many things one link names that it rests on; the others are counted.
const mostNamed = 100

// Why finds the reason for a subject: a file or a key, an output, a step "3" or an item "3/7"; "" is the main output.
func Why(events Events, subject string, nodes Names) (*Reason, error) {
	r, err := Fold(events)
	if err != nil {
		return nil, err
	}
	w := &why{links: r.links(), nodes: nodes, out: &Reason{calls: map[callKey]call{}}, depth: map[Place]int{}}
	if err := w.begin(strings.TrimSpace(subject)); err != nil {
		return nil, err
	}
	for len(w.queue) > 0 {
		at := w.queue[0]
		w.queue = w.queue[1:]
		w.visit(at)
	}
	w.addInputs()
	if w.left > 0 {
		w.say("%d more steps stand behind these: ask for one of them", w.left)
	}
	if err := w.gather(events); err != nil {
		return nil, err
	}
	return w.out, nil
}

// why is one answer while it is put together.
type why struct {
	*links
	nodes  Names
	out    *Reason
	queue  []Place
	depth  map[Place]int
	handed []Link
	left   int
}

func (w *why) say(format string, args ...any) {
	w.out.Notes = append(w.out.Notes, fmt.Sprintf(format, args...))
}

// push has a place explained, once, and returns its name.
func (w *why) push(at Place, depth int) string {
	if _, known := w.depth[at]; !known {
		if len(w.depth) >= mostLinks {
			w.left++
			return w.name(at)
		}
		w.depth[at] = depth
		w.queue = append(w.queue, at)
	}
	return w.name(at)
}

// name is a place for people, and for the next question.
func (r *Record) name(at Place) string {
	st := r.State.Step(at.Step)
	switch {
	case st == nil:
		return "what was handed in"
	case at.Item >= 0 && st.Kind == run.KindBatch:
		return fmt.Sprintf("%d/%d", at.Step, at.Item)
	default:
		return strconv.Itoa(at.Step)
	}
}

// visit adds the link of a step or an item, and has what it rests on explained next.
func (w *why) visit(at Place) {
	st := w.State.Step(at.Step)
	if len(st.Items) == 1 && st.Kind != run.KindBatch {
		at.Item = 0
	}
	b := Basis{Subject: w.name(at), Step: at.Step, Item: at.Item, Kind: st.Kind, State: string(st.Status), Model: st.Model, Time: st.Ended,
		Depth: w.depth[whole(at.Step)]}
	if d, ok := w.depth[at]; ok {
		b.Depth = d
	}
	if st.Kind != run.KindBatch {
		b.Item = -1
	}
	switch {
	case st.Kind == run.KindBatch && at.Item < 0:
		w.batch(&b, st)
	case at.Item >= 0:
		w.item(&b, st, at.Item)
	default:
		w.plainStep(&b, st)
	}
	for _, k := range w.of(at) {
		w.rest(&b, k)
	}
	w.judgedBy(&b, at)
	w.claims(&b, at)
	w.add(b)
}

// rest notes one thing that a link rests on.
func (w *why) rest(b *Basis, k Link) {
	if k.To.Step < 0 {
		what := k.Name
		if what == "" {
			what = "the input"
		}
		b.rests(what, "handed in: "+what+how(k.How))
		if !slices.ContainsFunc(w.handed, func(h Link) bool { return h.Name == k.Name && h.Ref == k.Ref }) {
			w.handed = append(w.handed, Link{To: k.To, How: k.How, Name: k.Name, Ref: k.Ref})
		}
		return
	}
	name := w.push(k.To, b.Depth+1)
	b.rests(name, w.lead(k.To)+name+how(k.How))
}

// rests notes what a link rests on, up to mostNamed things; more are counted.
func (b *Basis) rests(on, text string) {
	if len(b.From) >= mostNamed {
		b.more++
		return
	}
	b.From, b.Inputs = append(b.From, on), append(b.Inputs, text)
}

// add puts a link into the answer, and says what it does not name.
func (w *why) add(b Basis) {
	if b.more > 0 {
		w.say("%s rests on %d more things than are named here: ask for one of them", b.Subject, b.more)
		b.more = 0
	}
	w.out.Bases = append(w.out.Bases, b)
}

// how says how a link is known, where that is not plain.
func how(h How) string {
	switch h {
	case ByText:
		return " (a text of it is in the request)"
	case ByOrder:
		return " (inferred: the script asked right after it was given this)"
	default:
		return ""
	}
}

// lead says what a result is worth to who goes on from it: what a model wrote and nobody checked is a lead.
func (r *Record) lead(at Place) string {
	st := r.State.Step(at.Step)
	switch {
	case st.Kind == run.KindSpawn:
		return "lead, from a child run: step "
	case st.Model != "" && st.Kind != run.KindEvaluate:
		return "lead, a model's words: step "
	default:
		return "step "
	}
}

// addInputs adds a link for each thing that was handed in and something rests on.
func (w *why) addInputs() {
	deepest := 0
	for _, b := range w.out.Bases {
		deepest = max(deepest, b.Depth)
	}
	for _, k := range w.handed {
		b := Basis{Subject: k.Name, Step: -1, Item: -1, Key: k.Name, Kind: "input", State: "handed in", Time: w.State.Born, Depth: deepest + 1}
		if b.Subject == "" {
			b.Subject = "the input"
		}
		if k.Ref != "" {
			b.Bodies = []Body{{SHA256: k.Ref, Name: "input"}}
		}
		w.out.Bases = append(w.out.Bases, b)
	}
}
