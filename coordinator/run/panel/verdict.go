package panel

// The verdicts.
const (
	Passed     = "passed"
	SentBack   = "sent_back"
	NeedsHuman = "needs_human"
)

// Verdict is the conclusion and what it rests on. Facts and opinions never share a field.
type Verdict struct {
	Verdict  string    `json:"verdict"`
	Rule     string    `json:"rule"`
	Reasons  []string  `json:"reasons"` // made of what code found
	Facts    []Fact    `json:"facts"`
	Opinions []string  `json:"opinions"` // the judges' words: leads at best
	Criteria []Outcome `json:"criteria"`
	Judges   []Judge   `json:"judges"`
	Flags    []string  `json:"flags,omitempty"`
	Code     []Code    `json:"code,omitempty"`
}

// Fact is a line that somebody named and code found.
type Fact struct {
	Criterion string `json:"criterion"`
	Quote
}

// Outcome is how one criterion was answered.
type Outcome struct {
	Criterion string `json:"criterion"`
	Must      bool   `json:"must"`
	Result    string `json:"result"` // met, not_met or cannot_tell
	By        []Said `json:"by"`
}

// Said is one judge's answer.
type Said struct {
	Judge   string `json:"judge"`
	Said    string `json:"said"`
	Counted string `json:"counted"`
}

// Judge is who was asked, and what its word is known to be worth.
type Judge struct {
	Model       string  `json:"model"`
	Digest      string  `json:"digest,omitempty"`
	Family      string  `json:"family"`
	Node        string  `json:"node,omitempty"`
	Calibration string  `json:"calibration"` // none, good or advisory
	N           int     `json:"n,omitempty"` // subjects of each kind that it was measured on
	TPR         float64 `json:"tpr,omitempty"`
	TNR         float64 `json:"tnr,omitempty"`
}

// end makes the verdict.
func (c Case) end(verdict, rule string, reasons []string) Next {
	v := &Verdict{Verdict: verdict, Rule: rule, Reasons: append([]string{}, reasons...), Facts: []Fact{}, Opinions: []string{},
		Criteria: []Outcome{}, Judges: []Judge{}, Flags: c.flags(), Code: c.Code}
	for i, k := range c.Criteria {
		out := Outcome{Criterion: k.Text, Must: k.Must, Result: c.count(i, k).result(), By: []Said{}}
		for _, a := range c.Asked {
			answer := a.answer(i, k)
			out.By = append(out.By, Said{a.Model, answer.Said, answer.Counted})
			v.sort(k.Text, answer)
		}
		v.Criteria = append(v.Criteria, out)
	}
	for _, a := range c.Asked {
		worth := a.least(c.Criteria)
		v.Judges = append(v.Judges, Judge{Model: a.Model, Digest: a.Digest, Family: a.Family, Node: a.Node,
			Calibration: worth.Word(), N: worth.N, TPR: worth.TPR, TNR: worth.TNR})
	}
	return Next{Verdict: v}
}

// sort puts what was found among the facts, and what was said among the opinions.
func (v *Verdict) sort(criterion string, a Answer) {
	for _, q := range a.Quotes {
		v.Facts = append(v.Facts, Fact{criterion, q})
	}
	for _, m := range a.Missing {
		v.Opinions = append(v.Opinions, criterion+": quoted, but it is nowhere: "+m)
	}
	for _, said := range []string{a.Reason, a.Against} {
		if said != "" {
			v.Opinions = append(v.Opinions, criterion+": "+said)
		}
	}
}
