package run

import (
	"encoding/json"
	"strings"
	"time"
)

// verdict is what a judge's call concludes, see docs/requests.md.
type verdict struct {
	Verdict string   `json:"verdict"`
	Reasons []string `json:"reasons"`
}

// readVerdict reads a judge's result. One that is none is the judge's failure and not the item's.
func readVerdict(c Content) (verdict, *Failure) {
	var v verdict
	err := json.Unmarshal(c.Value, &v)
	if err == nil && (v.Verdict == "passed" || v.Verdict == KindSentBack || v.Verdict == KindNeedsHuman) {
		return v, nil
	}
	return v, &Failure{Kind: KindBadVerdict, Message: "the judge gave no verdict", Advice: Changed}
}

// consequence is what the verdict means for the item that was judged.
func (v verdict) consequence(st *Step, it *Item, now time.Time) Consequence {
	why := strings.Join(v.Reasons, "; ")
	if why == "" {
		why = "the judge gave no reason"
	}
	switch {
	case v.Verdict == "passed":
		return Consequence{Then: ThenSucceeded}
	case v.Verdict == KindNeedsHuman:
		return Consequence{Then: ThenFailed, Failure: &Failure{Kind: KindNeedsHuman, Message: why, Advice: Never}}
	case it.tries.work >= st.spec.Retry.Attempts:
		return Consequence{Then: ThenFailed, Failure: &Failure{Kind: KindSentBack, Message: why, Advice: Changed}}
	default:
		return Consequence{Then: ThenRetry, RetryAt: &now, Feedback: v.Reasons}
	}
}
