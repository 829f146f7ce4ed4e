package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
func (st *Step) seat(i int) int {
	if t := st.Items[i].tries; t != nil && t.judging != nil {
		return t.judging.seat
	}
	return st.judge
}

// seats is the judging of an open item.
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

// settled is the verdict that code alone comes to before anybody is asked, nil when there is none.
func (s *State) settled(st *Step) *panel.Verdict {
	return panel.Decide(s.bench(st, judging{}, st.spec.Author)).Verdict
}

// judged adds a judge's answers to those of the others.
func (s *State) judged(st *Step, it *Item, f *Flight, j panel.Judgement) judging {
	var so judging
	if it.tries.judging != nil {
		so = *it.tries.judging
	} else {
		so.seat = st.judge
	}
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

// judgement decides about a judge's call that gave something: another judge, or the verdict and what it means for the item.
func (s *State) judgement(c Finish, st *Step, it *Item, now time.Time) (Payload, *Failure) {
	j, failure := readJudgement(c.Result)
	if failure != nil {
		return nil, failure
	}
	end := &AttemptSucceeded{AttemptID: c.AttemptID, Evidence: c.Evidence, Result: c.Result}
	next := panel.Decide(s.bench(st, s.judged(st, it, it.Flight, j), st.author(it)))
	if next.Verdict == nil {
		end.Consequence = Consequence{Then: ThenJudge, Model: next.Judge, Avoid: it.Flight.Node}
		return end, nil
	}
	raw, err := marshal(next.Verdict)
	if err != nil {
		return nil, &Failure{Kind: KindBadVerdict, Message: err.Error(), Advice: Never}
	}
	end.Verdict, end.Consequence = raw, Consequence{Then: ThenSucceeded}
	if st.Kind != KindEvaluate {
		end.Consequence = after(next.Verdict, st, it, now)
	}
	return end, nil
}

// readJudgement reads what a judge's call gave. One that answers nothing is the judge's failure and not the item's.
func readJudgement(c Content) (j panel.Judgement, _ *Failure) {
	err := json.Unmarshal(c.Value, &j)
	if err == nil && (len(j.Answers) > 0 || j.Empty) {
		return j, nil
	}
	return j, &Failure{Kind: KindBadVerdict, Message: "the judge answered no question", Advice: Changed}
}

// after is what a verdict means for the item that was judged.
func after(v *panel.Verdict, st *Step, it *Item, now time.Time) Consequence {
	why := strings.Join(v.Reasons, "; ")
	switch {
	case v.Verdict == panel.Passed:
		return Consequence{Then: ThenSucceeded}
	case v.Verdict == panel.NeedsHuman:
		return Consequence{Then: ThenFailed, Failure: &Failure{Kind: KindNeedsHuman, Message: why, Advice: Never}}
	case it.tries.work >= st.spec.Retry.Attempts:
		return Consequence{Then: ThenFailed, Failure: &Failure{Kind: KindSentBack, Message: why, Advice: Changed}}
	default:
		return Consequence{Then: ThenRetry, RetryAt: &now, Feedback: v.Reasons}
	}
}

// stead is the candidate who sits in the place of a judge whose calls failed for good, false when there is none.
func (s *State) stead(st *Step, it *Item) (int, bool) {
	j := judging{seat: st.judge}
	if it.tries != nil && it.tries.judging != nil {
		j = *it.tries.judging
	}
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
