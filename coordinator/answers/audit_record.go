package answers

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// Needs are the hashes of the bodies that an audit wants to know about: those that a replay or the repetition of a failure needs.
func (r *Record) Needs() []string {
	var out []string
	add := func(sha string) {
		if sha != "" {
			out = append(out, sha)
		}
	}
	add(r.State.Pinned.Script)
	add(r.State.Pinned.SourceMap)
	for _, k := range r.inputRefs() {
		add(k)
	}
	for _, x := range r.failed {
		add(x.prompt)
		add(x.raw)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// inputRefs are the bodies of the input.
func (r *Record) inputRefs() []string {
	var out []string
	each(decode(r.State.Pinned.Input), "", func(_ string, v any) bool {
		sha, _ := refOf(v)
		if sha != "" {
			out = append(out, sha)
		}
		return sha == ""
	})
	return out
}

// answered are the failures of something that a model said: there is a prompt, and mostly a reply.
var answered = []string{"empty_turn", "text_instead_of_structure", "schema_violation", "truncated", "plan_invalid", "stream_broken", "stalled"}

// replayable asks whether each failure can be repeated: the script, the input, what was asked and what came back are there.
func (r *Record) replayable(gone map[string]string) Check {
	c := Check{Code: Replayable, Question: "Can each failure be replayed?"}
	var f found
	missing := func(sha, what string) {
		if why, is := gone[sha]; is && sha != "" {
			f.add("%s: %s", what, why)
		}
	}
	missing(r.State.Pinned.Script, "the script")
	missing(r.State.Pinned.SourceMap, "the script's source map")
	for _, sha := range r.inputRefs() {
		missing(sha, fmt.Sprintf("the input %.12s", sha))
	}
	asked := 0
	for _, x := range r.failed {
		at := r.tryName(x.id)
		switch {
		case x.prompt != "":
			asked++
			missing(x.prompt, "the prompt of "+at)
			missing(x.raw, "the reply of "+at)
		case slices.Contains(answered, x.kind):
			f.add("%s failed (%s), and what it was asked is not recorded", at, x.kind)
		}
	}
	c.Findings = f.all()
	c.Answer = fmt.Sprintf("%s failed; of %d a model had been asked.", plural(len(r.failed), "attempt", "attempts"), asked)
	return c
}

// tryName names an attempt for people.
func (r *Record) tryName(id run.AttemptID) string {
	at := fmt.Sprintf("step %d", id.Pos)
	if st := r.State.Step(id.Pos); st != nil && st.Kind == run.KindBatch {
		at += ", " + st.ItemKey(id.Item)
	}
	if id.Phase == run.Judge {
		return fmt.Sprintf("%s, judge, try %d", at, id.Number)
	}
	return fmt.Sprintf("%s, try %d", at, id.Number)
}

// evidence asks which claims nothing stands behind. A claim may be true; here it is told from what was verified.
func (r *Record) evidence() Check {
	c := Check{Code: Evidence, Question: "Does something stand behind every claim?"}
	var f found
	for _, at := range r.bare {
		what := fmt.Sprintf("step %d", at.Step)
		if st := r.State.Step(at.Step); st.Kind == run.KindBatch {
			what += ", " + st.ItemKey(at.Item)
		}
		f.add("%s was passed on opinions alone: no quote of the judge was found in a source", what)
	}
	a := r.acceptance()
	if a.ByCode > 0 {
		f.add("%s covered by the word of the script alone: no step stands behind it", plural(a.ByCode, "key is", "keys are"))
	}
	for _, w := range a.Waived {
		if w.Reason == "" {
			f.add("a failure of step %d was waived without a reason", w.Step)
		}
	}
	for _, st := range r.State.Requests {
		if st.Kind != run.KindApprove || st.Result.Value == nil {
			continue
		}
		var got struct {
			Outcome  string
			TimedOut bool `json:"timed_out"`
		}
		if json.Unmarshal(st.Result.Value, &got) == nil && got.TimedOut && got.Outcome == run.Approved {
			f.add("step %d was approved because the time was up: nobody said yes", st.Pos)
		}
	}
	c.Findings = f.all()
	c.Answer = fmt.Sprintf("%s passed, %d with quotes that were found; texts that steps hand to each other are leads and no facts.",
		plural(r.passed, "judgement", "judgements"), r.passed-len(r.bare))
	return c
}
