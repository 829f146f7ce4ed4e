package answers

import (
	"fmt"
	"slices"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// step is a step with its items, or the child that it started.
func (t *tree) step(st *run.Step) (*Branch, error) {
	b := &Branch{Kind: "step", Name: fmt.Sprintf("%d %s", st.Pos, st.Kind), State: string(st.Status), Begin: at(st.Requested), End: at(st.Ended), Text: st.Label}
	if st.Failure != nil {
		b.Text = st.Failure.Kind + ": " + st.Failure.Message
	}
	switch {
	case st.Kind == run.KindBatch:
		t.items(b, st)
	case len(st.Items) == 1:
		t.shown[Place{st.Pos, 0}] = b
	}
	if st.Child != nil {
		child, err := treeOf(st.Child.Run, t.runs, t.nodes, t.depth+1)
		if err != nil {
			return nil, err
		}
		b.Children = append(b.Children, child)
	}
	return b, nil
}

// items shows a small batch whole, and of a large one the first few and some of those that failed.
func (t *tree) items(b *Branch, st *run.Step) {
	c := st.Counts
	b.Text = fmt.Sprintf("%d items: %d succeeded, %d failed", c.Total, c.Succeeded, c.Failed)
	if st.Label != "" {
		b.Text = st.Label + ", " + b.Text
	}
	var list []int
	for i := range st.Items {
		if len(st.Items) <= mostShown || i < firstFew {
			list = append(list, i)
		}
	}
	if len(st.Items) > mostShown {
		for n, i := range st.Failed {
			if n < firstFew && i >= firstFew {
				list = append(list, i)
			}
		}
		slices.Sort(list)
	}
	for _, i := range list {
		it := &st.Items[i]
		item := &Branch{Kind: "item", Name: st.ItemKey(i), State: string(it.Status)}
		if it.Failure != nil && it.Status != run.StepSucceeded {
			item.Text = it.Failure.Kind + ": " + it.Failure.Message
		}
		t.shown[Place{st.Pos, i}] = item
		b.Children = append(b.Children, item)
	}
	if left := len(st.Items) - len(list); left > 0 {
		b.Children = append(b.Children, &Branch{Kind: "more", Name: fmt.Sprintf("%d more items", left)})
	}
}

// attempt hangs an attempt under its item.
func (t *tree) attempt(e run.Event) {
	add := func(id run.AttemptID, state, text string, ev run.Evidence) {
		item := t.shown[Place{id.Pos, id.Item}]
		if item == nil {
			return
		}
		b := &Branch{Kind: "attempt", Name: fmt.Sprintf("%s %d", id.Phase, id.Number), State: state, Text: text, Node: t.nodes.of(ev.Node), End: at(e.Time)}
		if p, ok := t.placed[id]; ok {
			b.Begin = at(p.Time)
			b.Node = t.nodes.of(p.Data.(*run.Placed).Node)
			delete(t.placed, id)
		}
		item.Children = append(item.Children, b)
	}
	switch p := e.Data.(type) {
	case *run.Placed:
		if t.shown[Place{p.Pos, p.Item}] != nil {
			t.placed[p.AttemptID] = e
		}
	case *run.AttemptSucceeded:
		text := ""
		if v, ok := readVerdict(p.Concluded()); ok && p.Phase == run.Judge {
			text = v.Verdict
		}
		add(p.AttemptID, "succeeded", text, p.Evidence)
	case *run.AttemptFailed:
		add(p.AttemptID, "failed", p.Cause.Kind+": "+p.Cause.Message, p.Evidence)
	case *run.AttemptLate:
		add(p.AttemptID, "late", "it counts for nothing", p.Evidence)
	case *run.ItemReused:
		if item := t.shown[Place{p.Pos, p.Item}]; item != nil {
			item.Children = append(item.Children, &Branch{Kind: "attempt", Name: "reused", State: "succeeded", End: at(e.Time), Text: fmt.Sprintf("from step %d of run %s", p.From.Pos, p.From.Run)})
		}
	}
}
