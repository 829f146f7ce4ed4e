package answers

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// Inquiry is a question to the step that judged something, else to the one that made it, with the input that it had: ready to be sent
// as one call.
type Inquiry struct {
	Who    string   // the step and what it did, for people
	Model  string   // the one that was asked then
	Bodies []string // hashes of what has to be there: the prompt as it was sent, and the reply as it was received
	Input  json.RawMessage
}

// instruction comes after the recorded prompt and reply. The answer is an opinion, and is told as one.
const instruction = "The first text above is a request that you were given; the second, where there is one, is what you answered. Answer the question below about it. " +
	"Go by what stands in the request alone, quote its words, and say so where it does not tell.\n\nQuestion: "

// Ask builds the question; sizes are those of the bodies that are there. It fails when no model had a part in the subject, or when what it was given is not recorded.
func (r *Reason) Ask(question string, sizes map[string]int64) (Inquiry, error) {
	at, phase, what := r.judged, run.Judge, "judged"
	if at != nil {
		if _, judge := r.calls[callKey{*at, run.Judge}]; !judge {
			phase = run.Work // a step of its own
		}
	} else if at, phase, what = r.made, run.Work, "made it"; at == nil {
		return Inquiry{}, fmt.Errorf("no model judged it or made it, so there is none to ask")
	}
	c, ok := r.calls[callKey{*at, phase}]
	if !ok || c.model == "" {
		return Inquiry{}, fmt.Errorf("what step %d was asked is not recorded", at.Step)
	}
	q := Inquiry{Who: fmt.Sprintf("step %d, which %s, with %s", at.Step, what, c.model), Model: c.model, Bodies: []string{c.prompt}}
	if c.reply != "" {
		q.Bodies = append(q.Bodies, c.reply)
	}
	type ref struct {
		Bytes int64  `json:"bytes"`
		Name  string `json:"name"`
		Ref   string `json:"ref"`
	}
	context := []ref{{sizes[c.prompt], "request", c.prompt}}
	if c.reply != "" {
		context = append(context, ref{sizes[c.reply], "answer", c.reply})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(map[string]any{"context": context, "label": fmt.Sprintf("why %d", at.Step), "model": c.model, "prompt": instruction + question})
	q.Input = bytes.TrimSpace(b.Bytes())
	return q, err
}
