package run

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run/panel"
)

// judging is a result before its judges.
type judging struct {
	asked []panel.Asked
	seat  int   // the candidate who is asked next, or now
	fails int   // its calls that failed
	out   []int // candidates whose calls failed for good
}

// judges says whether the attempts of a phase are those of judges.
func (st *Step) judges(p Phase) bool { return p == Judge || st.Kind == KindEvaluate }

// judgesOf are the candidates that may judge.
func (st *Step) judgesOf() []string {
	if st.Kind == KindEvaluate {
		return st.Models
	}
	return st.Judges
}

// seat is the candidate who judges item i next, or now.
func (st *Step) seat(i int) int { return st.Items[i].sitting(st).seat }

// sitting is what the judges of an item have said so far.
func (it *Item) sitting(st *Step) judging {
	if it.tries == nil || it.tries.judging == nil {
		return judging{seat: st.judge}
	}
	return *it.tries.judging
}

// seats is the judging of an open item, to be changed.
func (t *tries) seats(st *Step) *judging {
	if t.judging == nil {
		t.judging = &judging{seat: st.judge}
	}
	return t.judging
}

// bench puts together what is known of the result of an item; maker is the model that made it, "" where that is not known.
func (s *State) bench(st *Step, j judging, maker string) panel.Case {
	c := panel.Case{Criteria: st.spec.Criteria, Code: st.spec.Code, Asked: j.asked, Out: j.out}
	if e := st.spec.Evaluate; e != nil {
		c.Criteria = e.Criteria
	}
	if maker != "" {
		c.Author = s.family(maker)
	}
	for _, model := range st.judgesOf() {
		c.Candidates = append(c.Candidates, s.judge(model))
	}
	return c
}

// judge is a candidate, as far as it is known without a call.
func (s *State) judge(asked string) panel.Candidate {
	return panel.Candidate{Model: s.uses(asked), Family: s.family(asked)}
}

// author is the model that made what is to be judged.
func (st *Step) author(it *Item) string {
	if st.Kind == KindEvaluate {
		return st.spec.Author
	}
	if at := int(it.Report.Candidate); at < len(st.Models) {
		return st.Models[at]
	}
	return ""
}

// opening is the candidate who judges first.
func (s *State) opening(st *Step, maker string) int {
	return panel.Decide(s.bench(st, judging{}, maker)).Judge
}

// judged adds a judge's answers to those of the others.
func (s *State) judged(st *Step, it *Item, f *Flight, j panel.Judgement) judging {
	so := it.sitting(st)
	a := panel.Asked{Candidate: s.judge(st.judgesOf()[so.seat]), Digest: f.Digest, Node: f.Node, Judgement: j}
	s.calibrate(&a)
	so.asked = append(slices.Clone(so.asked), a)
	return so
}

// calibrate adds what was known of a judge when the run began: of that digest, with these prompts.
func (s *State) calibrate(a *panel.Asked) {
	prompts := JudgePrompts(s.Pinned.Prompts)
	for _, c := range s.Pinned.Judges {
		if c.Model != a.Model || c.Digest != a.Digest || c.Prompts != prompts {
			continue
		}
		was := panel.Calibration{N: c.N, TPR: c.TPR, TNR: c.TNR}
		if c.Type == "" {
			a.Calibration = was
			continue
		}
		if a.Types == nil {
			a.Types = map[string]panel.Calibration{}
		}
		a.Types[c.Type] = was
	}
}

// JudgePrompts names the texts that the judges of a run are given, by what it has pinned (Created.Prompts); "" for the workers' own.
func JudgePrompts(pinned map[string]string) string {
	h, n := sha256.New(), 0
	for _, name := range slices.Sorted(maps.Keys(pinned)) {
		if strings.HasPrefix(name, "check_") {
			fmt.Fprintf(h, "%s %s\n", name, pinned[name])
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// stead is the candidate who sits in the place of a judge whose calls failed for good, false when there is none.
func (s *State) stead(st *Step, it *Item) (int, bool) {
	j := it.sitting(st)
	j.out = append(slices.Clone(j.out), j.seat)
	next := panel.Decide(s.bench(st, j, st.author(it)))
	return next.Judge, next.Verdict == nil
}

// seated lets a candidate judge an item next.
func (s *State) seated(st *Step, i int, seat int, now time.Time) {
	it := &st.Items[i]
	t := it.tries
	if st.Kind != KindEvaluate {
		t.phase = Judge
	}
	j := t.seats(st)
	if len(j.asked) == 0 || j.seat != seat { // the only one there is, asked once more, is asked otherwise
		it.anew(t.phase)
	}
	j.seat, j.fails, t.ready, t.failedOn, t.avoid, it.Failure = seat, 0, now, "", nil, nil
	t.well()
	for _, a := range j.asked {
		if !slices.Contains(t.avoid, a.Node) {
			t.avoid = append(t.avoid, a.Node)
		}
	}
	s.move(st, i, StepReady)
	st.wait(i, now)
}
