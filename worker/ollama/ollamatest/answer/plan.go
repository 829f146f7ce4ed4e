package answer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// step is one item of a plan while it is built.
type step struct {
	index int
	goal  string
	after []int // indexes of the steps it depends on
	ids   *[]json.RawMessage
	work  *work // nil where the schema does not ask
}

func isID(name string) bool { return hasAny(name, "id", "n", "key", "number") }

func isGoal(name string) bool {
	return hasAny(name, "goal", "instruction", "task", "description", "title", "prompt", "action", "name")
}

func isDependency(name string) bool {
	return hasAny(name, "depends_on", "after", "deps", "dependencies", "requires", "needs")
}

// plan returns the steps of a plan when the array is one: a list of objects that say what to do and what comes first.
// It returns nil for other arrays.
func (b *builder) plan(s *schema, at place, least, most int) ([]step, error) {
	if at.step != nil || len(s.Items) == 0 {
		return nil, nil
	}
	item, err := b.parse(s.Items, 0)
	if err != nil || item.Properties == nil {
		return nil, err
	}
	var goal, order bool
	for p := item.Properties.Oldest(); p != nil; p = p.Next() {
		name := normalise(p.Key)
		goal, order = goal || isGoal(name), order || isDependency(name)
	}
	if !goal || !order {
		return nil, nil
	}
	if f, ok := b.working(item); ok {
		return b.workPlan(f, most), nil
	}
	goals := stepGoals(b.goal, max(least, min(5, most)))
	ids := make([]json.RawMessage, len(goals))
	steps := make([]step, len(goals))
	for i, g := range goals {
		steps[i] = step{index: i, goal: g, after: predecessors(i, len(goals)), ids: &ids}
	}
	return steps, nil
}

// stepGoals words n steps with the goal's own words.
func stepGoals(goal string, n int) []string {
	goal = clip(strings.TrimRight(goal, ".!? "), 140)
	all := []string{
		"Read the material and list what matters for this goal: " + goal,
		"Work out the main points of: " + goal,
		"Collect details and examples for: " + goal,
		"Write a draft that meets the goal: " + goal,
		"Check the draft against the goal and finish it: " + goal,
	}
	for len(all) < n {
		all = slices.Insert(all, 3, "Look at one more aspect of: "+goal)
	}
	switch n { // the ends matter more than the middle
	case 1:
		return all[3:4]
	case 2:
		return []string{all[0], all[3]}
	case 3:
		return []string{all[0], all[1], all[3]}
	case 4:
		return all[:4]
	}
	return all
}

// predecessors make a small graph: everything follows the first step, the draft joins the parallel middle, the check
// follows the draft.
func predecessors(i, n int) []int {
	join := n - 2
	if n < 5 {
		join = n - 1
	}
	switch {
	case i == 0:
		return nil
	case i < join:
		return []int{0}
	case i > join || join < 2:
		return []int{i - 1}
	}
	var middle []int
	for k := 1; k < join; k++ {
		middle = append(middle, k)
	}
	return middle
}

func (b *builder) writePlan(out *bytes.Buffer, s *schema, steps []step, at place, err error) error {
	if err != nil {
		return err
	}
	out.WriteByte('[')
	for i := range steps {
		if i > 0 {
			out.WriteByte(',')
		}
		inside := at.item(i)
		inside.index = 0
		inside.step = &steps[i]
		if err := b.learnID(s.Items, inside); err != nil {
			return err
		}
		if err := b.build(out, s.Items, inside); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	return nil
}

// learnID works out the id of a step before its dependants need it.
func (b *builder) learnID(raw json.RawMessage, at place) error {
	item, err := b.parse(raw, 0)
	if err != nil {
		return err
	}
	for p := item.Properties.Oldest(); p != nil; p = p.Next() {
		if !isID(normalise(p.Key)) {
			continue
		}
		var id bytes.Buffer
		if err := b.build(&id, p.Value, at.child(p.Key)); err != nil {
			return err
		}
		(*at.step.ids)[at.step.index] = id.Bytes()
		return nil
	}
	return nil
}

// dependencies writes the ids of the steps that come first, as many as the schema allows, the nearest ones.
func (b *builder) dependencies(out *bytes.Buffer, _ *schema, at place, most int) error {
	after := at.step.after
	after = after[max(0, len(after)-most):]
	var ids [][]byte
	for _, i := range after {
		if id := (*at.step.ids)[i]; id != nil {
			ids = append(ids, id)
		}
	}
	out.WriteByte('[')
	out.Write(bytes.Join(ids, []byte(",")))
	out.WriteByte(']')
	return nil
}
