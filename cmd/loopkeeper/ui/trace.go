package ui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/run/ladder"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Trace says what happened in a run, one short line per event. It is fed every event from the first on, because what an
// event is about stands in earlier ones.
type Trace struct {
	Style Style
	Names map[string]string // of nodes, by id
	state run.State
}

// Event is one event for people.
type Event struct {
	Time  time.Time
	Seq   int64
	What  string // what happened: placed, succeeded, …
	About string // the step and, in a batch, the item's key
	Item  string // the item's key or the step's label alone, "" for an event of the run
	Node  string
	Text  string // why, or what came of it
	// Prompt and Reply are the hashes of what was asked and answered, "" where nothing was.
	Prompt, Reply string
	Verdict       []byte // of a judge, JSON
}

// Add takes the next event. One that a newer version wrote is shown by its kind.
func (t *Trace) Add(e *coordinatorv1.GetTraceResponse) Event {
	out := Event{Time: e.GetTime().AsTime(), Seq: e.GetSeq(), What: e.GetKind()}
	decoded, err := run.Decode(e.GetSeq(), out.Time, e.GetKind(), e.GetPayloadJson())
	if err != nil || run.Apply(&t.state, decoded) != nil {
		return out
	}
	switch p := decoded.Data.(type) {
	case *run.Requested:
		out.What = "asked for"
		t.about(&out, p.Pos, -1)
		out.Text = t.request(p)
	case *run.StepEnded:
		out.What = string(p.Status)
		t.about(&out, p.Pos, -1)
		if out.Text = endText(p); p.Failure != nil {
			out.Text = failureText(*p.Failure)
		}
	case *run.ItemFailed:
		out.What = "failed"
		t.about(&out, p.Pos, p.Item)
		out.Text = failureText(p.Failure)
	case *run.ItemTurned:
		out.What = "next model"
		t.about(&out, p.Pos, p.Item)
		out.Text = failureText(p.Cause)
	default:
		if !t.attempt(&out, decoded.Data) && !t.item(&out, decoded.Data) {
			out.What, out.Text = runEvent(decoded.Data)
		}
	}
	return out
}

// Line prints an event on one line; it is cut at its end where the place has a width.
func (t *Trace) Line(e Event) string {
	line := fmt.Sprintf("%s %5s  %-10s  %-26s  %-8s  %s", e.Time.Local().Format("15:04:05"), "#"+strconv.FormatInt(e.Seq, 10), e.What,
		Middle(Line(e.About), 26), Middle(Line(orDash(e.Node)), 8), Line(e.Text))
	return strings.TrimRight(sentence(line, t.Style.Width), " ")
}

// about names what an event is about; item -1 is the whole step.
func (t *Trace) about(e *Event, pos, item int) {
	e.About = fmt.Sprintf("step %d", pos)
	st := t.state.Step(pos)
	if st == nil {
		return
	}
	if e.Item = st.Label; st.Label == "" && st.Kind != run.KindBatch {
		e.About += " " + st.Kind
	}
	if item >= 0 && st.Kind == run.KindBatch {
		e.Item = st.ItemKey(item)
	}
	if e.Item != "" {
		e.About += " " + e.Item
	}
}

// attempt fills in an event of an attempt, and says whether it is one.
func (t *Trace) attempt(e *Event, p run.Payload) bool {
	var id run.AttemptID
	var ev run.Evidence
	var text []string
	switch p := p.(type) {
	case *run.Placed:
		id, ev.Node, e.What = p.AttemptID, p.Node, "placed"
		if text = []string{p.Model, p.Why}; strings.Contains(p.Why, p.Model) {
			text = text[1:]
		}
	case *run.Begun:
		id, e.What = p.AttemptID, "running"
		if _, at := t.flight(id); at != nil {
			ev.Node = at.Node
		}
	case *run.AttemptSucceeded:
		id, ev, e.What = p.AttemptID, p.Evidence, "answered"
		text = []string{spent(ev.Report), consequence(p.Consequence)}
		if id.Phase == run.Judge || p.Verdict != nil || p.Then == run.ThenJudge && p.Model > 0 {
			e.What, e.Verdict = "judged", p.Concluded()
			text = append([]string{verdictText(p.Concluded())}, text...)
		}
	case *run.AttemptFailed:
		id, ev, e.What = p.AttemptID, p.Evidence, "failed"
		text = []string{failureText(p.Cause), spent(ev.Report), consequence(p.Consequence)}
	case *run.AttemptLate:
		id, ev, e.What = p.AttemptID, p.Evidence, "late"
		text = []string{"it came after nobody waited for it any more", spent(ev.Report)}
	default:
		return false
	}
	t.about(e, id.Pos, id.Item)
	try := fmt.Sprintf("try %d", id.Number)
	if id.Phase == run.Judge {
		try = fmt.Sprintf("judge, try %d", id.Number)
	}
	e.Text = joined(append([]string{try}, text...))
	e.Prompt, e.Reply = ev.Prompt, ev.Raw
	if e.Node = ev.Node; t.Names[ev.Node] != "" {
		e.Node = t.Names[ev.Node]
	}
	return true
}

func (t *Trace) flight(id run.AttemptID) (*run.Step, *run.Flight) {
	st := t.state.Step(id.Pos)
	if st == nil || id.Item < 0 || id.Item >= len(st.Items) {
		return st, nil
	}
	return st, st.Items[id.Item].Flight
}

// request says in short what a step asks for.
func (t *Trace) request(p *run.Requested) string {
	st := t.state.Step(p.Pos)
	text := []string{p.Op}
	if p.Op == run.KindBatch {
		text = append(text, Plural(int64(len(st.Items)), "item", "items"))
	}
	return joined(append(text, st.Model))
}

// runEvent says in short what happened to the run as a whole.
func runEvent(p run.Payload) (what, text string) {
	switch p := p.(type) {
	case *run.Created:
		return "created", joined([]string{p.Workflow, inputText(p.Input), ifAny("key ", p.Key)})
	case *run.Started:
		return "started", ""
	case *run.Logged:
		var l struct{ Level, Text string }
		_ = json.Unmarshal(p.Body, &l) // the ledger has checked it
		return "log", l.Level + ": " + l.Text
	case *run.OutputNoted:
		var o run.Output
		_ = json.Unmarshal(p.Body, &o) // likewise
		return "output", joined([]string{o.Name, sourcesText(o)})
	case *run.CollectedNoted:
		var c run.Collected
		_ = json.Unmarshal(p.Body, &c) // likewise
		return "collected", fmt.Sprintf("%s: %s", c.Label, Plural(int64(len(c.Failures)), "failure", "failures"))
	case *run.ScriptEnded:
		if p.Error != nil {
			return "script", "failed: " + p.Error.Message
		}
		return "script", "returned"
	case *run.LimitReached:
		return "limit", fmt.Sprintf("%s: %d of %d spent", stateText(p.Limit), p.Spent, p.Value)
	case *run.CancelRequested:
		return "cancelled", p.Reason
	case *run.Ended:
		c := p.Counts
		return "ended", joined(append([]string{stateText(string(p.Status)), fmt.Sprintf("%s of %s items succeeded", Count(int64(c.Succeeded)), Count(int64(c.Total)))},
			p.Shortfalls...))
	default:
		if what, text, ok := steered(p); ok {
			return what, text
		}
		return p.Kind(), ""
	}
}

// inputText is an input in short: lists by their length, texts by their beginning, references by their names.
func inputText(input json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(input, &fields) != nil {
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "keys" { // as many as there are items
			continue
		}
		switch v := fields[name].(type) {
		case []any:
			parts = append(parts, fmt.Sprintf("%d %s", len(v), name))
		case map[string]any:
			if file, ok := v["name"].(string); ok && v["ref"] != nil {
				parts = append(parts, name+" "+file)
			} else {
				parts = append(parts, name)
			}
		case string:
			parts = append(parts, name+" "+ansi.Truncate(Line(v), 32, "..."))
		default:
			parts = append(parts, fmt.Sprintf("%s %v", name, v))
		}
	}
	return strings.Join(parts, ", ")
}

func sourcesText(o run.Output) string {
	var steps []string
	for _, s := range o.Sources {
		steps = append(steps, strconv.Itoa(s))
	}
	text := ""
	if len(steps) > 0 {
		text = "from " + stepRanges(steps)
	}
	if o.Inferred {
		text += ", inferred"
	}
	return text
}

func failureText(f run.Failure) string { return KindText(f.Kind) + ": " + f.Message }

// spent is what an attempt used.
func spent(r run.Report) string {
	if r.PromptTokens == 0 && r.OutputTokens == 0 {
		return ""
	}
	text := fmt.Sprintf("%s tokens in, %s out", Tokens(r.PromptTokens), Tokens(r.OutputTokens))
	if r.TotalNanos > 0 {
		text += " in " + Duration(time.Duration(r.TotalNanos))
	}
	return text + Simulated(r.Simulated)
}

// consequence is what an attempt's end means for its item, where that is not what it says itself.
// differs says how the next try is another one.
var differs = map[ladder.Step]string{
	ladder.Room: "with more room for the answer", ladder.Mode: "after a look at how values are asked for", ladder.Repair: "with the list of what is wrong",
	ladder.Fresh: "without its history", ladder.Model: "with the next model",
}

func consequence(c run.Consequence) string {
	switch c.Then {
	case run.ThenCheck:
		return "now to be checked"
	case run.ThenUnknown:
		return "nobody knows whether it happened"
	case run.ThenJudge:
		return "now to be judged"
	case run.ThenRetry:
		if how := differs[c.Step]; how != "" {
			return "will be tried again, " + how
		}
		return "will be tried again"
	case run.ThenFailed:
		return "no try is left"
	default:
		return ""
	}
}

func joined(parts []string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

func ifAny(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}
