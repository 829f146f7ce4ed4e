package run

import (
	"fmt"
	"strings"
)

// Acceptance is what was expected of a run against what was done, computed from its events.
type Acceptance struct {
	Expected  int `json:"expected"` // keys submitted, and those that the script expected
	Covered   int `json:"covered"`
	Handled   int `json:"handled"` // failed or left out, and waived or made good
	Failed    int `json:"failed"`
	Uncovered int `json:"uncovered"` // never worked on, or missing from an answer

	FailedKeys    []string  `json:"failed_keys,omitempty"`    // the first of them
	UncoveredKeys []string  `json:"uncovered_keys,omitempty"` // the first of them
	Waived        []Handled `json:"waived,omitempty"`
	Fallbacks     []Handled `json:"fallbacks,omitempty"`
	Swallowed     []Missed  `json:"swallowed,omitempty"` // delivered failures that the script neither threw, collected nor waived; the first of them
	SwallowedAll  int       `json:"swallowed_all,omitempty"`
	ByCode        int       `json:"by_code,omitempty"` // expected keys that only the script's own code says are covered
}

// Handled is a failure, or a key, that does not count against the run.
type Handled struct {
	Step   int    `json:"step"` // -1 for a key alone
	Item   int    `json:"item"` // -1 for the whole step
	Key    string `json:"key,omitempty"`
	Reason string `json:"reason,omitempty"`
	By     int    `json:"by,omitempty"` // the step that made it good
}

// Missed is a failure that was delivered.
type Missed struct {
	Step     int    `json:"step"`
	Item     int    `json:"item"` // -1 for a step without items
	Key      string `json:"key,omitempty"`
	Kind     string `json:"kind"`
	Message  string `json:"message"` // of the last attempt
	Attempts int    `json:"attempts,omitempty"`
}

// maxListed bounds each list of an acceptance in the run's last event; what there is to say of every item is with the items.
const maxListed = 20

// place is an item of a step, or with item -1 all of it.
type place struct{ step, item int }

// judgement is the books while they are added up.
type judgement struct {
	*State
	a         *Acceptance
	handled   map[place]bool
	keys      map[string]bool        // left out on purpose
	collected map[int]bool           // steps whose failure the script collected
	items     map[int]map[string]int // by step and key, of steps of which an item was waived by its key
	void      int                    // items without a result whose work a rollback made void
}

// Acceptance adds up what is expected and what is done so far, in time that grows with the number of items.
func (s *State) Acceptance() *Acceptance {
	_, j := s.shortfalls()
	return j.a
}

// share is how much of what was expected is covered or, where nothing was named, of the items that count.
func (j *judgement) share() float64 {
	if j.a.Expected > 0 {
		return float64(j.a.Covered) / float64(j.a.Expected)
	}
	c := j.Counts
	c.Total -= j.void
	return c.Coverage()
}

func (a *Acceptance) empty() bool {
	return a.Expected == 0 && len(a.Waived) == 0 && len(a.Fallbacks) == 0 && a.SwallowedAll == 0
}

// maxShortfalls bounds the list in the run's last event; the failures themselves are with their items.
const maxShortfalls = 20

func newJudgement(s *State) *judgement {
	return &judgement{State: s, a: &Acceptance{}, handled: map[place]bool{}, keys: map[string]bool{}, collected: map[int]bool{}, items: map[int]map[string]int{}}
}

// Forgiven returns what says of the failure of an item, or with item -1 of a step, that it does not count against the run: it was waived, made
// good by a fallback, or is of a phase that was done again.
func (s *State) Forgiven() func(pos, item int) bool {
	j := newJudgement(s)
	j.handle()
	return func(pos, item int) bool {
		return j.handled[place{pos, -1}] || j.handled[place{pos, item}] || s.undone(pos)
	}
}

// shortfalls says why the run's task is not done although its program may be: nothing when all that was expected is covered or
// handled, no failure was swallowed or collected, every loop reached its goal and every output rests on steps that succeeded.
func (s *State) shortfalls() ([]string, *judgement) {
	j := newJudgement(s)
	for _, c := range s.Collected {
		for _, f := range c.Failures {
			if st := s.Of(f); st != nil {
				j.collected[st.Pos] = true
			}
		}
	}
	j.handle()
	var out []string
	for _, st := range s.Requests {
		switch {
		case st.Note || j.sound(st):
		case s.undone(st.Pos):
			j.void += st.Counts.Total - st.Counts.Succeeded
		default:
			out = append(out, j.missing(st))
		}
	}
	out = append(out, j.coverage()...)
	out = append(out, j.notes()...)
	if n := len(out); n > maxShortfalls {
		out = append(out[:maxShortfalls:maxShortfalls], fmt.Sprintf("and %d more", n-maxShortfalls))
	}
	return out, j
}

// sound says whether a step counts as done: it succeeded, or its failures are handled.
func (j *judgement) sound(st *Step) bool {
	switch {
	case st.Child != nil && !st.Detached && st.Child.Status != Completed:
		return j.handled[place{st.Pos, -1}]
	case st.Status == StepSucceeded, st.Status == StepSkipped:
		return true
	case st.Status != StepFailed:
		return false
	case j.handled[place{st.Pos, -1}]:
		return true
	}
	for _, i := range st.Failed {
		if !j.handled[place{st.Pos, i}] {
			return false
		}
	}
	return len(st.Failed) > 0
}

// missing says what is missing of a step, and books the failures that the script was given and did nothing about.
func (j *judgement) missing(st *Step) string {
	returned := j.Script != nil && j.Script.Error == nil && !j.collected[st.Pos]
	for _, i := range st.Failed {
		if it := &st.Items[i]; returned && !j.handled[place{st.Pos, i}] {
			j.swallowed(Missed{Step: st.Pos, Item: i, Key: st.ItemKey(i), Kind: it.Failure.Kind, Message: it.Failure.Message, Attempts: it.Sent[0]})
		}
	}
	if f := st.Failure; f != nil && len(st.Failed) == 0 && returned {
		j.swallowed(Missed{Step: st.Pos, Item: -1, Kind: f.Kind, Message: f.Message})
	}
	switch {
	case st.Child != nil && st.Status == StepSucceeded:
		return fmt.Sprintf("step %d (%s): the run %s is %s", st.Pos, st.Kind, st.Child.Run, st.Child.Status)
	case st.Failure != nil:
		return fmt.Sprintf("step %d (%s): %s", st.Pos, st.Kind, st.Failure.Message)
	case st.Status == StepUnknown, st.writing():
		return fmt.Sprintf("step %d (%s): whether it happened is unknown", st.Pos, st.Kind)
	default:
		return fmt.Sprintf("step %d (%s) is not done", st.Pos, st.Kind)
	}
}

func (j *judgement) swallowed(m Missed) {
	if j.a.SwallowedAll++; j.a.SwallowedAll <= maxListed {
		j.a.Swallowed = append(j.a.Swallowed, m)
	}
}

// handle books what was waived, and fallbacks that succeeded, each for a failure that there is.
func (j *judgement) handle() {
	for _, w := range j.claims.waived {
		if w.Step == nil {
			j.keys[w.Key] = true
			j.a.Waived = append(j.a.Waived, Handled{Step: -1, Item: -1, Key: w.Key, Reason: w.Reason})
			continue
		}
		item := w.Item
		if st := j.Step(*w.Step); item == nil && w.Key != "" && st != nil {
			item = j.find(st, w.Key)
		}
		j.book(&j.a.Waived, *w.Step, item, Handled{Reason: w.Reason})
	}
	for _, f := range j.claims.fallbacks {
		if by := j.Step(*f.By); by != nil && !by.Note && *f.By != *f.Step && by.Status == StepSucceeded && j.sound(by) {
			j.book(&j.a.Fallbacks, *f.Step, f.Item, Handled{By: *f.By})
		}
	}
}

func (j *judgement) book(list *[]Handled, pos int, item *int, h Handled) {
	st := j.Step(pos)
	if st == nil || st.Note {
		return
	}
	h.Step, h.Item = pos, -1
	if item != nil && len(st.Items) > 0 {
		if *item >= len(st.Items) || st.Items[*item].Status != StepFailed {
			return
		}
		h.Item, h.Key = *item, st.ItemKey(*item)
	} else if st.Status != StepFailed && st.Child == nil {
		return
	}
	if at := (place{pos, h.Item}); !j.handled[at] {
		j.handled[at] = true
		*list = append(*list, h)
	}
}

// find returns the first item of a key, nil when there is none.
func (j *judgement) find(st *Step, key string) *int {
	at := j.items[st.Pos]
	if at == nil {
		at = make(map[string]int, len(st.Items))
		for i := len(st.Items) - 1; i >= 0; i-- {
			at[st.ItemKey(i)] = i
		}
		j.items[st.Pos] = at
	}
	if i, ok := at[key]; ok {
		return &i
	}
	return nil
}

// notes are the shortfalls that the script itself told of.
func (j *judgement) notes() []string {
	var out []string
	for _, c := range j.Collected {
		for _, f := range c.Failures {
			if j.Of(f) == nil && !j.keys[f.Key] { // else it is listed as a step, or was waived
				out = append(out, strings.TrimPrefix(c.Label+": ", ": ")+f.Key+": "+f.Message)
			}
		}
	}
	for _, u := range j.claims.untils {
		if !u.Reached {
			out = append(out, fmt.Sprintf("%q was not reached in %d rounds", u.Label, u.Round))
		}
	}
	for _, o := range j.Outputs {
		for _, pos := range o.Sources {
			if st := j.Step(pos); st == nil || !st.Note && !j.sound(st) {
				out = append(out, fmt.Sprintf("output %q rests on step %d, which did not succeed", o.Name, pos))
			}
		}
	}
	return append(out, j.claims.refused...)
}
