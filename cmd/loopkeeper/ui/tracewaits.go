package ui

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// item fills in an event of an item that is no attempt, and says whether it is one.
func (t *Trace) item(e *Event, p run.Payload) bool {
	switch p := p.(type) {
	case *run.ItemChecked:
		t.about(e, p.Pos, p.Item)
		e.What, e.Text = "checked", "the script's check passed it"
		if !p.Passed {
			e.Text = joined(append([]string{"the script's check sent it back"}, p.Reasons...))
		}
		e.Text = joined([]string{e.Text, consequence(p.Consequence)})
	case *run.ItemReused:
		t.about(e, p.Pos, p.Item)
		e.What, e.Text = "taken over", joined([]string{fromText(p.From), consequence(p.Consequence)})
		if e.Node = p.Node; t.Names[p.Node] != "" {
			e.Node = t.Names[p.Node]
		}
	case *run.ItemDoubted:
		t.about(e, p.Pos, p.Item)
		e.What, e.Text = "in doubt", "it may have been written already, "+fromText(p.From)
	case *run.ItemAsked:
		t.about(e, p.Pos, p.Item)
		e.What, e.Text = "asked", p.Question.Title
	case *run.ItemPermitted:
		t.about(e, p.Pos, p.Item)
		e.What, e.Text = p.Outcome, joined([]string{ifAny("said by ", p.By), p.Comment})
	case *run.ItemResolved:
		t.about(e, p.Pos, p.Item)
		e.What, e.Text = "resolved", joined([]string{map[run.Then]string{run.ThenSucceeded: "it happened", run.ThenRetry: "it did not happen"}[p.Then],
			ifAny("said by ", p.By), p.Comment})
	case *run.ChildStarted:
		t.about(e, p.Pos, -1)
		e.What, e.Text = "started", "run "+p.Run
	default:
		return false
	}
	return true
}

func fromText(f run.From) string {
	return fmt.Sprintf("from run %s, step %d", f.Run, f.Pos)
}

// endText is how a step ended that no model worked on: a person's answer, a child's end, or where its result is from.
func endText(p *run.StepEnded) string {
	switch {
	case p.Child != nil:
		return fmt.Sprintf("run %s is %s", p.Child.Run, stateText(string(p.Child.Status)))
	case p.From != nil:
		return "taken over " + fromText(*p.From)
	}
	var said struct {
		Outcome  string          `json:"outcome"`
		Answer   json.RawMessage `json:"answer"`
		By       string          `json:"by"`
		Comment  string          `json:"comment"`
		TimedOut bool            `json:"timed_out"`
	}
	if json.Unmarshal(p.Result.Value, &said) != nil || said.Outcome == "" && said.Answer == nil {
		return ""
	}
	text := []string{said.Outcome}
	if said.Answer != nil {
		text = []string{"answer " + answerText(said.Answer)}
	}
	if said.TimedOut {
		return joined(append(text, "by the clock: nobody answered in time"))
	}
	return joined(append(text, ifAny("by ", said.By), said.Comment))
}

// steered says in short what a person did with a run, or its pipeline; ok is false for other events.
func steered(p run.Payload) (what, text string, ok bool) {
	switch p := p.(type) {
	case *run.Parked:
		return "suspended", joined([]string{ifAny("by ", p.By), p.Reason}), true
	case *run.Resumed:
		return "resumed", ifAny("by ", p.By), true
	case *run.PhaseMoved:
		return "phase", phaseText(p), true
	case *run.Noted:
		return p.Op, joined([]string{noteText(p.Body), p.Refused}), true
	default:
		return "", "", false
	}
}

func phaseText(p *run.PhaseMoved) string {
	way := fmt.Sprintf("%s: begins with %s", p.Pipeline, p.To)
	switch {
	case p.From != "" && p.To == "":
		way = fmt.Sprintf("%s: %s passed, all is done", p.Pipeline, p.From)
	case p.From != "":
		way = fmt.Sprintf("%s: %s %s, then %s", p.Pipeline, p.From, stateText(p.Outcome), p.To)
	}
	return joined([]string{way, p.Reason})
}

// noteText is a note about what counts as done: its fields in words.
func noteText(body []byte) string {
	var n struct {
		Keys   []string `json:"keys"`
		Key    string   `json:"key"`
		Step   *int     `json:"step"`
		Item   *int     `json:"item"`
		By     *int     `json:"by"`
		Label  string   `json:"label"`
		Round  int      `json:"round"`
		Reason string   `json:"reason"`
		Done   *bool    `json:"reached"`
	}
	if json.Unmarshal(body, &n) != nil {
		return ""
	}
	var parts []string
	if len(n.Keys) > 0 {
		parts = append(parts, Plural(int64(len(n.Keys)), "key", "keys")+": "+named(n.Keys, int64(len(n.Keys))))
	}
	at := ""
	if n.Step != nil {
		at = fmt.Sprintf("step %d", *n.Step)
		if n.Item != nil {
			at += fmt.Sprintf(", item %d", *n.Item)
		}
	}
	parts = append(parts, n.Key, n.Label, at)
	if n.By != nil {
		parts = append(parts, fmt.Sprintf("made good by step %d", *n.By))
	}
	if n.Done != nil {
		reached := "not reached"
		if *n.Done {
			reached = "reached"
		}
		parts = append(parts, fmt.Sprintf("%s in round %d", reached, n.Round))
	}
	return strings.TrimSpace(joined(append(parts, n.Reason)))
}
