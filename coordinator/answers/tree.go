package answers

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// Branch is a part of a run as a tree: run, phase, parallel, branch, step, item, attempt, or "more" for what is summed up.
type Branch struct {
	Kind     string     `json:"kind"`
	Name     string     `json:"name"`
	State    string     `json:"state,omitempty"`
	Node     string     `json:"node,omitempty"` // name
	Text     string     `json:"text,omitempty"`
	Begin    *time.Time `json:"begin,omitempty"`
	End      *time.Time `json:"end,omitempty"`
	Children []*Branch  `json:"children,omitempty"`
}

// mostShown is how many items of a batch, and steps of a branch, the tree has in full; of more it has the first few and those that failed.
const (
	mostShown = 12
	firstFew  = 3
	mostSteps = 200
)

// ErrNoRun is what the events of a run begin with that is not here.
var ErrNoRun = errors.New("there is no such run")

// Tree lays a run out: phases and branches that ran side by side, their steps, items and attempts, and the children, as far as they
// are here. runs gives the events of a run.
func Tree(id string, runs func(id string) Events, nodes Names) (*Branch, error) {
	return treeOf(id, runs, nodes, 0)
}

// deepest is how deep children are followed. Runs have a limit of their own, which is far below.
const deepest = 32

func treeOf(id string, runs func(id string) Events, nodes Names, depth int) (*Branch, error) {
	events := runs(id)
	r, err := Fold(events)
	if depth > deepest || depth > 0 && errors.Is(err, ErrNoRun) {
		return &Branch{Kind: "run", Name: id, Text: "its events are not here"}, nil
	}
	if err != nil {
		return nil, err
	}
	t := &tree{Record: r, nodes: nodes, runs: runs, depth: depth, shown: map[Place]*Branch{}, placed: map[run.AttemptID]run.Event{}}
	root := &Branch{Kind: "run", Name: id, State: string(r.State.Status), Text: r.State.Pinned.Workflow, Begin: at(r.State.Born), End: at(r.State.Ended)}
	if err := t.grow(root); err != nil {
		return nil, err
	}
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		t.attempt(e)
	}
	return root, nil
}

// at is a time, nil for none.
func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// tree is one run while it is laid out.
type tree struct {
	*Record
	nodes  Names
	runs   func(id string) Events
	depth  int
	shown  map[Place]*Branch // items, and steps without
	placed map[run.AttemptID]run.Event
	rests  *links // once they were needed
}

// grow hangs the steps under the phases and branches they belong to. A turn that asks for several things while nothing else is
// open begins branches; what is asked for while some of them are open goes on in the branch of what it followed.
func (t *tree) grow(root *Branch) error {
	trunk, phase := root, phaseMove{}
	branch := map[int]*Branch{} // by step
	for _, group := range t.turnsOf() {
		first := t.asked[group[0].Pos]
		if m, _ := t.phaseAt(group[0].Pos); m != phase {
			phase, trunk = m, root
			if m.phase != "" {
				trunk = t.phase(root, m)
			}
		}
		under := trunk
		switch b := branch[first.after]; {
		case first.open > 0 && b != nil:
			under = b
		case len(group) > 1 && t.goOn(trunk, group, branch):
			// each in the branch that it follows
			under = nil
		case len(group) > 1:
			under = &Branch{Kind: "parallel", Name: fmt.Sprintf("%d side by side", len(group))}
			trunk.Children = append(trunk.Children, under)
		}
		for _, st := range group {
			home := under
			if under == nil {
				home = branch[st.Pos]
			} else if under.Kind == "parallel" {
				home = &Branch{Kind: "branch", Name: branchName(st)}
				under.Children = append(under.Children, home)
			}
			branch[st.Pos] = home
			if len(home.Children) >= mostSteps {
				sum(home)
				continue
			}
			b, err := t.step(st)
			if err != nil {
				return err
			}
			home.Children = append(home.Children, b)
		}
	}
	flatten(root)
	return nil
}

// goOn says whether steps that were asked for at once go on in the branches before them, a branch each, as when those were given
// their results together. Then branch has them.
func (t *tree) goOn(trunk *Branch, group []*run.Step, branch map[int]*Branch) bool {
	if len(trunk.Children) == 0 || trunk.Children[len(trunk.Children)-1].Kind != "parallel" {
		return false
	}
	if t.rests == nil {
		t.rests = t.links()
	}
	side := trunk.Children[len(trunk.Children)-1]
	homes, taken := make([]*Branch, len(group)), map[*Branch]bool{}
	for i, st := range group {
		for _, k := range t.rests.of(whole(st.Pos)) {
			if home := branch[k.To.Step]; k.How != ByOrder && k.To.Step >= 0 && slices.Contains(side.Children, home) && !taken[home] {
				homes[i] = home
			}
		}
		if homes[i] == nil {
			return false
		}
		taken[homes[i]] = true
	}
	for i, st := range group {
		branch[st.Pos] = homes[i]
	}
	return true
}

// turnsOf groups the steps by the turn that asked for them.
func (t *tree) turnsOf() [][]*run.Step {
	var out [][]*run.Step
	turn := -1
	for _, st := range t.State.Requests {
		if st.Note || st.Kind == run.KindPhase {
			continue
		}
		if now := t.asked[st.Pos].turn; now != turn || len(out) == 0 {
			out, turn = append(out, nil), now
		}
		out[len(out)-1] = append(out[len(out)-1], st)
	}
	return out
}

func (t *tree) phase(root *Branch, m phaseMove) *Branch {
	b := &Branch{Kind: "phase", Name: m.pipeline + ": " + m.phase}
	if m.round > 1 {
		b.Text = fmt.Sprintf("round %d", m.round)
	}
	root.Children = append(root.Children, b)
	return b
}

func branchName(st *run.Step) string {
	if st.Label != "" {
		return st.Label
	}
	return fmt.Sprintf("from step %d on", st.Pos)
}

// sum counts a step of a branch that has too many to show.
func sum(home *Branch) {
	last := home.Children[len(home.Children)-1]
	if last.Kind != "more" {
		last = &Branch{Kind: "more"}
		home.Children = append(home.Children, last)
	}
	n := 0
	_, _ = fmt.Sscanf(last.Name, "%d", &n) // it is ours
	last.Name = fmt.Sprintf("%d more steps", n+1)
}

// flatten takes branches of one step out again: the step says all there is to say.
func flatten(b *Branch) {
	for i, c := range b.Children {
		flatten(c)
		if c.Kind == "branch" && len(c.Children) == 1 {
			b.Children[i] = c.Children[0]
		}
	}
}
