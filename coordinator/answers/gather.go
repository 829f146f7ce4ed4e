package answers

import (
	"fmt"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/judges"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// gather goes through the events once more and adds what each attempt of the explained places left behind.
func (w *why) gather(events Events) error {
	g := &gathering{why: w, at: map[Place]*Basis{}, placed: map[run.AttemptID]*run.Placed{}}
	for i := range w.out.Bases {
		b := &w.out.Bases[i]
		if st := w.State.Step(b.Step); st != nil {
			if st.Kind == run.KindBatch {
				g.at[Place{b.Step, b.Item}] = b
			} else {
				g.at[Place{b.Step, 0}] = b
			}
		}
	}
	for e, err := range events {
		if err != nil {
			return err
		}
		g.take(e)
	}
	if w.out.judged == nil {
		w.out.judged = g.judged
	}
	if len(w.out.Bases) > 0 {
		for _, b := range w.out.Bases {
			if st := w.State.Step(b.Step); st != nil && len(st.Items) > 0 && (b.Item >= 0 || st.Kind != run.KindBatch) && st.Model != "" {
				w.out.made = &Place{b.Step, max(b.Item, 0)}
				break
			}
		}
	}
	return nil
}

// gathering is the second pass.
type gathering struct {
	*why
	at     map[Place]*Basis
	placed map[run.AttemptID]*run.Placed
	judged *Place
}

func (g *gathering) take(e run.Event) {
	switch p := e.Data.(type) {
	case *run.Placed:
		if g.at[Place{p.Pos, p.Item}] != nil {
			g.placed[p.AttemptID] = p
		}
	case *run.AttemptSucceeded:
		b := g.at[Place{p.Pos, p.Item}]
		if b == nil {
			return
		}
		g.ended(b, p.AttemptID, p.Evidence, "succeeded")
		if p.Phase != run.Judge {
			b.Time = e.Time
		}
		if st := g.State.Step(p.Pos); p.Phase == run.Judge || st.Kind == run.KindEvaluate {
			g.verdict(b, p)
		}
		if st := g.State.Step(p.Pos); p.Phase == run.Work && st.Items[p.Item].Event == e.Seq && p.Result.Ref != "" && st.Items[p.Item].Result.Empty() {
			b.Bodies = append(b.Bodies, Body{SHA256: p.Result.Ref, Name: "result", Bytes: p.Result.Bytes})
		}
	case *run.AttemptFailed:
		if b := g.at[Place{p.Pos, p.Item}]; b != nil {
			how := fmt.Sprintf("failed: %s: %s", p.Cause.Kind, p.Cause.Message)
			if !p.Counted {
				how += " (not counted: the node's fault)"
			}
			g.ended(b, p.AttemptID, p.Evidence, how)
		}
	case *run.AttemptLate:
		if b := g.at[Place{p.Pos, p.Item}]; b != nil {
			g.ended(b, p.AttemptID, p.Evidence, "came late and counts for nothing")
		}
	case *run.ItemTurned:
		if b := g.at[Place{p.Pos, p.Item}]; b != nil {
			b.Tries = append(b.Tries, "no machine can take it, so the next model is asked: "+p.Cause.Message)
		}
	case *run.ItemFailed:
		if b := g.at[Place{p.Pos, p.Item}]; b != nil {
			b.Tries = append(b.Tries, "ended without an attempt: "+p.Failure.Kind+": "+p.Failure.Message)
		}
	default:
		g.other(e)
	}
}

// other are the events that are no attempts.
func (g *gathering) other(e run.Event) {
	switch p := e.Data.(type) {
	case *run.ItemChecked:
		if b := g.at[Place{p.Pos, p.Item}]; b != nil {
			if p.Passed {
				b.Facts = append(b.Facts, "the script's own check passed it")
			} else {
				b.Facts = append(b.Facts, "the script's own check sent it back: "+strings.Join(p.Reasons, "; "))
			}
		}
	case *run.ItemReused:
		if b := g.at[Place{p.Pos, p.Item}]; b != nil {
			b.Time = e.Time
			b.Tries = append(b.Tries, fmt.Sprintf("taken over from %s of run %s, at no cost", placeName(p.From.Pos, p.From.Item), p.From.Run))
			b.Inputs = append(b.Inputs, fmt.Sprintf("step %d of run %s", p.From.Pos, p.From.Run))
			g.say("%s was taken over: loopkeeper why %s %d", b.Subject, p.From.Run, p.From.Pos)
		}
	case *run.ItemDoubted:
		if b := g.at[Place{p.Pos, p.Item}]; b != nil {
			b.Tries = append(b.Tries, fmt.Sprintf("whether %s of run %s wrote it was unknown", placeName(p.From.Pos, p.From.Item), p.From.Run))
		}
	case *run.ItemPermitted:
		if b := g.at[Place{p.Pos, p.Item}]; b != nil {
			b.Opinions = append(b.Opinions, strings.TrimSuffix(fmt.Sprintf("%s %s it: %s", p.By, p.Outcome, p.Comment), ": "))
		}
	case *run.ItemResolved:
		if b := g.at[Place{p.Pos, p.Item}]; b != nil {
			said := "did not happen"
			if p.Then == run.ThenSucceeded {
				said = "happened"
			}
			b.Opinions = append(b.Opinions, strings.TrimSuffix(fmt.Sprintf("%s said that it %s: %s", p.By, said, p.Comment), ": "))
		}
	}
}

func placeName(pos, item int) string {
	if item > 0 {
		return fmt.Sprintf("%d/%d", pos, item)
	}
	return fmt.Sprintf("step %d", pos)
}

// ended adds one attempt with its outcome and what it left behind.
func (g *gathering) ended(b *Basis, id run.AttemptID, ev run.Evidence, how string) {
	what, model := "try", ""
	if id.Phase == run.Judge {
		what = "judge, try"
	}
	node := ev.Node
	if p := g.placed[id]; p != nil {
		node, model = p.Node, p.Model
		if id.Phase != run.Judge || b.Digest == "" {
			b.Digest = p.Digest
		}
		if p.Why != "" {
			how += " (there because " + p.Why + ")"
		}
		delete(g.placed, id)
	}
	text := fmt.Sprintf("%s %d", what, id.Number)
	if model != "" {
		text += " of " + model
	}
	if node != "" {
		text += " on " + g.nodes.of(node)
	}
	if ev.Prompt != "" {
		g.out.calls[callKey{Place{id.Pos, id.Item}, id.Phase}] = call{model, g.nodes.of(node), ev.Prompt, ev.Raw}
	}
	b.Tries = append(b.Tries, text+" "+how)
	for _, body := range []Body{{SHA256: ev.Prompt, Name: "prompt"}, {SHA256: ev.Raw, Name: "reply"}, {SHA256: ev.Thinking, Name: "thinking"}} {
		if body.SHA256 != "" {
			body.Name = fmt.Sprintf("%s of %s %d", body.Name, what, id.Number)
			b.Bodies = append(b.Bodies, body)
		}
	}
	b.Simulated = b.Simulated || ev.Report.Simulated
}

// verdict adds what a judge concluded. The last one counts.
func (g *gathering) verdict(b *Basis, p *run.AttemptSucceeded) {
	v, ok := readVerdict(p.Concluded())
	if !ok {
		return
	}
	b.Verdict, b.Judged = v.Verdict, judges.Conclude(p.Concluded()).String()
	b.Facts = append(b.Facts, v.facts()...)
	b.Opinions = append(b.Opinions, v.opinions()...)
	b.Reasons = append(b.Reasons, v.Reasons...)
	if g.judged == nil {
		g.judged = &Place{p.Pos, p.Item}
	}
}
