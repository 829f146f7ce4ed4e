package run

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run/panel"
)

// settled is the verdict that code alone comes to before anybody is asked, nil when there is none.
func (s *State) settled(st *Step) *panel.Verdict {
	return panel.Decide(s.bench(st, judging{}, st.spec.Author)).Verdict
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
