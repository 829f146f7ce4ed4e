package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Equal says whether a replay gave the answer that was recorded.
func (c Checked) Equal(o Checked) bool {
	return c.Passed == o.Passed && slices.Equal(c.Reasons, o.Reasons)
}

// answers are the script's answers to check deliveries. One for an item that was stopped meanwhile is not wanted any more.
func (s *State) answers(given []CheckAnswer) ([]Payload, error) {
	var out []Payload
	seen := map[[2]int]bool{}
	for _, c := range given {
		st, it := s.item(c.Pos, c.Item)
		name := [2]int{c.Pos, c.Item}
		switch {
		case it == nil:
			return nil, errNoSuch(c.Pos, c.Item)
		case seen[name]:
			return nil, fmt.Errorf("the script answers the check of item %d of step %d twice", c.Item, c.Pos)
		case it.phase() != Check:
			continue
		}
		seen[name] = true
		out = append(out, &ItemChecked{Pos: c.Pos, Item: c.Item, Checked: c.Checked, Consequence: c.consequence(s, st, it)})
	}
	return out, nil
}

// consequence is what the check means for the item. A failed one sends it back, like a judge.
func (c CheckAnswer) consequence(s *State, st *Step, it *Item) Consequence {
	why := strings.Join(c.Reasons, "; ")
	if why == "" {
		why = "the check gave no reason"
	}
	switch {
	case c.Passed && it.Report.Reused: // it was judged then
		return Consequence{Then: ThenSucceeded}
	case c.Passed:
		return s.accepted(st, Check, st.author(it))
	case it.tries.work >= st.spec.Retry.Attempts:
		return Consequence{Then: ThenFailed, Failure: &Failure{Kind: KindCheckFailed, Message: why, Advice: Changed}}
	default:
		return Consequence{Then: ThenRetry, Feedback: c.Reasons}
	}
}

func (s *State) checked(p *ItemChecked, now time.Time) error {
	st, it := s.item(p.Pos, p.Item)
	if it == nil || it.phase() != Check {
		return errors.New("the item is not being checked")
	}
	s.checks--
	given := p.Checked
	s.Deliveries[it.tries.check].Given = &given
	s.consequence(st, p.Item, p.Consequence, p.Failure, now)
	return nil
}
