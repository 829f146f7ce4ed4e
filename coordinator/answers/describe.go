package answers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// mostListed is how many keys or failures of a batch a link lists.
const mostListed = 5

// batch describes a batch as a whole; each of its items can be asked for.
func (w *why) batch(b *Basis, st *run.Step) {
	c := st.Counts
	b.Attempts = c.Total + c.Retried
	text := fmt.Sprintf("%d items: %d succeeded, %d failed", c.Total, c.Succeeded, c.Failed)
	if c.Reused > 0 {
		text += fmt.Sprintf(", %d taken over from an earlier run", c.Reused)
	}
	b.Tries = append(b.Tries, text)
	for n, i := range st.Failed {
		if n == mostListed {
			b.Reasons = append(b.Reasons, fmt.Sprintf("and %d more failed", len(st.Failed)-n))
			break
		}
		b.Reasons = append(b.Reasons, fmt.Sprintf("%s failed: %s: %s", st.ItemKey(i), st.Items[i].Failure.Kind, st.Items[i].Failure.Message))
	}
	for i := range st.Items {
		b.Simulated = b.Simulated || st.Items[i].Report.Simulated
	}
}

// item describes one item, or a step that has but one.
func (w *why) item(b *Basis, st *run.Step, i int) {
	it := &st.Items[i]
	b.State, b.Node, b.Attempts, b.Simulated = string(it.Status), w.nodes.of(it.Node), it.Sent[0]+it.Sent[1], it.Report.Simulated
	if st.Kind == run.KindBatch {
		b.Key = st.ItemKey(i)
	} else if b.Key = st.Label; b.Key == "" {
		b.Key, _ = written(st)
	}
	if it.Report.Model != "" {
		b.Model = it.Report.Model
	}
	if it.Failure != nil && it.Status != run.StepSucceeded {
		b.Reasons = append(b.Reasons, it.Failure.Kind+": "+it.Failure.Message)
	}
	if it.Result.Ref != "" {
		b.Bodies = append(b.Bodies, Body{SHA256: it.Result.Ref, Name: "result", Bytes: it.Result.Bytes})
	}
}

// plainStep describes a step without items: a wait, a read, a child, a phase.
func (w *why) plainStep(b *Basis, st *run.Step) {
	b.Key = st.Label
	if st.Failure != nil {
		b.Reasons = append(b.Reasons, st.Failure.Kind+": "+st.Failure.Message)
	}
	if f := st.From; f != nil {
		b.Reasons = append(b.Reasons, fmt.Sprintf("taken over from step %d of run %s", f.Pos, f.Run))
	}
	if c := st.Child; c != nil {
		b.Key = c.Run
		b.Inputs = append(b.Inputs, fmt.Sprintf("the run %s, which ended %s", c.Run, c.Status))
		w.say("step %d is the run %s: loopkeeper why %s", st.Pos, c.Run, c.Run)
	}
	if st.Result.Ref != "" {
		b.Bodies = append(b.Bodies, Body{SHA256: st.Result.Ref, Name: "result", Bytes: st.Result.Bytes})
	}
	w.settled(b, st)
}

// settled tells what a person answered. It is their word: an opinion, and no fact beyond that they said it.
func (w *why) settled(b *Basis, st *run.Step) {
	if st.Kind != run.KindApprove && st.Kind != run.KindQuestion || st.Result.Value == nil {
		return
	}
	var a struct {
		Outcome, By, Comment string
		Answer               json.RawMessage
		TimedOut             bool `json:"timed_out"`
	}
	if json.Unmarshal(st.Result.Value, &a) != nil {
		return
	}
	who := a.By
	switch {
	case a.TimedOut:
		who = "nobody: the time was up"
	case who == "":
		who = "a person"
	}
	if b.Verdict = a.Outcome; a.Outcome == "" {
		b.Opinions = append(b.Opinions, who+" answered "+plain(a.Answer))
		return
	}
	b.Opinions = append(b.Opinions, strings.TrimSuffix(a.Outcome+" by "+who+": "+a.Comment, ": "))
}

// judgedBy has the later steps explained that looked at what a place made: a judge's step, an approval.
func (w *why) judgedBy(b *Basis, at Place) {
	st := w.State.Step(at.Step)
	var sha string
	var value json.RawMessage
	if at.Item >= 0 {
		sha, value = st.Items[at.Item].Result.Ref, st.Items[at.Item].Result.Value
	}
	needle := []byte(sha)
	if sha == "" {
		needle = value
	}
	if len(needle) < least {
		return
	}
	for _, later := range w.State.Requests[at.Step+1:] {
		if later.Kind != run.KindEvaluate && later.Kind != run.KindApprove || !bytes.Contains(later.Body, needle) || !w.restsOn(later.Pos, at) {
			continue
		}
		name := w.push(whole(later.Pos), b.Depth+1)
		b.Facts = append(b.Facts, fmt.Sprintf("step %s (%s) looked at it", name, later.Kind))
		b.From = append(b.From, name)
		if later.Kind == run.KindEvaluate {
			w.out.judged = &Place{later.Pos, 0}
		}
	}
}

// claims tells what the script said about a place's failure.
func (w *why) claims(b *Basis, at Place) {
	for _, note := range w.State.Requests[min(at.Step+1, len(w.State.Requests)):] {
		if note.Kind != run.KindWaive && note.Kind != run.KindFallback {
			continue
		}
		var c struct {
			Step, Item, By *int
			Reason         string
		}
		if json.Unmarshal(note.Body, &c) != nil || c.Step == nil || *c.Step != at.Step || c.Item != nil && at.Item >= 0 && *c.Item != at.Item {
			continue
		}
		switch {
		case note.Kind == run.KindWaive:
			b.Opinions = append(b.Opinions, "its failure was waived: "+c.Reason)
		case c.By != nil && w.State.Step(*c.By) != nil && *c.By != at.Step:
			name := w.push(whole(*c.By), b.Depth+1)
			b.Reasons = append(b.Reasons, "its failure was made good by step "+name)
			b.From = append(b.From, name)
		}
	}
}

// restsOn says whether a request holds what a place made, and not just the same said by another.
func (w *why) restsOn(pos int, at Place) bool {
	for _, k := range w.of(whole(pos)) {
		if k.How != ByOrder && (k.To == at || k.To == whole(at.Step)) {
			return true
		}
	}
	return false
}
