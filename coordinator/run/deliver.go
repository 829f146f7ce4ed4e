package run

import (
	"encoding/json"
	"fmt"
)

// Settled is what a script is given for a step. Of the three one is set: Failure rejects, Value resolves, and Load resolves
// with a body that is still to be read, a text as a JSON string.
type Settled struct {
	Value   json.RawMessage
	Load    *Content
	Failure *Failure
}

// Settle returns what the script is given for the step at pos, which has ended. It follows from the state alone, so a replay
// gives the same. See docs/requests.md for the shapes; struct fields below are in the order of their names because values
// cross the border as canonical JSON.
func (s *State) Settle(pos int) (Settled, error) {
	st := s.Step(pos)
	if st == nil || st.Note || !st.Status.Ended() {
		return Settled{}, fmt.Errorf("step %d has not ended", pos)
	}
	if st.Kind == KindBatch && st.spec != nil {
		v, err := st.report()
		return Settled{Value: v}, err
	}
	if st.Status != StepSucceeded {
		f := st.Failure
		if f == nil {
			f = &Failure{Kind: string(st.Status), Message: "the step was " + string(st.Status), Advice: Never}
		}
		return Settled{Failure: f}, nil
	}
	result := st.Result
	if len(st.Items) == 1 {
		result = st.Items[0].Result
	}
	switch {
	case st.Kind == KindGenerate && result.Text:
		v, err := st.Items[0].reference(st.name())
		return Settled{Value: v}, err
	case result.Ref != "":
		return Settled{Load: &result}, nil
	default:
		return Settled{Value: result.Value}, nil
	}
}

func (st *Step) name() string {
	if st.Label != "" {
		return st.Label
	}
	return fmt.Sprintf("step %d", st.Pos)
}

type facts struct {
	Model        string  `json:"model"`
	Node         string  `json:"node"`
	OutputTokens int64   `json:"output_tokens"`
	PromptTokens int64   `json:"prompt_tokens"`
	Seconds      float64 `json:"seconds"`
	Simulated    bool    `json:"simulated"`
}

// reference is a free text as the script sees it: where it is and what made it, not the text.
func (it *Item) reference(name string) (json.RawMessage, error) {
	r := it.Report
	return marshal(struct {
		Bytes int64  `json:"bytes"`
		Facts facts  `json:"facts"`
		Name  string `json:"name"`
		Ref   string `json:"ref"`
	}{it.Result.Bytes, facts{r.Model, it.Node, r.OutputTokens, r.PromptTokens, float64(r.TotalNanos) / 1e9, r.Simulated}, name, it.Result.Ref})
}

type itemFailure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

type itemReport struct {
	Bytes   int64           `json:"bytes,omitempty"`
	Failure *itemFailure    `json:"failure,omitempty"`
	Index   int             `json:"index"`
	Key     string          `json:"key"`
	Ref     string          `json:"ref,omitempty"`
	Status  StepStatus      `json:"status"`
	Value   json.RawMessage `json:"value,omitempty"`
}

// report is a batch's result: every item in input order, whatever became of it.
func (st *Step) report() (json.RawMessage, error) {
	items := make([]itemReport, len(st.Items))
	for i := range st.Items {
		it := &st.Items[i]
		r := itemReport{Index: i, Key: st.ItemKey(i), Status: it.Status}
		if it.Status == StepSucceeded {
			r.Bytes, r.Ref, r.Value = it.Result.Bytes, it.Result.Ref, it.Result.Value
		} else if it.Failure != nil {
			r.Failure = &itemFailure{it.Failure.Kind, it.Failure.Message}
		}
		items[i] = r
	}
	return marshal(struct {
		Coverage  float64      `json:"coverage"`
		Failed    int          `json:"failed"`
		Items     []itemReport `json:"items"`
		Succeeded int          `json:"succeeded"`
		Total     int          `json:"total"`
	}{st.Counts.Coverage(), st.Counts.Failed, items, st.Counts.Succeeded, len(items)})
}
