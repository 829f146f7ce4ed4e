package panel

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Criterion is what must hold.
type Criterion struct {
	Text    string `json:"text"`
	Must    bool   `json:"must"`              // without it there is no "passed"; others are only reported
	Absence bool   `json:"absence,omitempty"` // it holds when something is not there: nothing can be quoted for that
	Type    string `json:"type,omitempty"`    // names what its judges were calibrated on; "" is any
}

// UnmarshalJSON reads a criterion as requests have it: its text alone, or an object. It must hold unless it says otherwise.
func (c *Criterion) UnmarshalJSON(raw []byte) error {
	*c = Criterion{Must: true}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &c.Text)
	}
	type plain Criterion
	return json.Unmarshal(raw, (*plain)(c))
}

// MarshalJSON is the reverse: the text alone where there is nothing else to say.
func (c Criterion) MarshalJSON() ([]byte, error) {
	type plain Criterion
	var v any = plain(c)
	if c.Must && !c.Absence && c.Type == "" {
		v = c.Text
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// The answers to a criterion.
const (
	Met        = "met"
	NotMet     = "not_met"
	CannotTell = "cannot_tell"
)

// Answer is what one judge answered to one criterion, as its worker checked it.
type Answer struct {
	Criterion string   `json:"criterion"`
	Said      string   `json:"said"`
	Counted   string   `json:"counted"` // what code takes it for: cannot_tell where no named line holds the words
	Reason    string   `json:"reason,omitempty"`
	Against   string   `json:"against,omitempty"`
	Quotes    []Quote  `json:"quotes,omitempty"`  // lines that are there, in their own words
	Missing   []string `json:"missing,omitempty"` // words that are nowhere
	Unquoted  bool     `json:"unquoted,omitempty"`
}

// Subject is where a quote is from that stands in the subject itself; workers call no source so.
const Subject = "subject"

// Quote is a line that code found.
type Quote struct {
	Text string `json:"quote"`
	In   string `json:"in"` // "subject", or the name of a source
	Line int    `json:"line"`
}

// Judgement is what one judge answered, and what its worker saw in the subject.
type Judgement struct {
	Answers []Answer `json:"answers"`
	Flags   []string `json:"flags,omitempty"` // control_strings, injection
	Empty   bool     `json:"empty,omitempty"` // there is nothing to judge; no model was asked
}

// Asked is a judge who has answered.
type Asked struct {
	Candidate
	Digest string
	Node   string
	Judgement
}

// shows says that an answer is proven. "Met" is, by a line of the subject, or by the absence that the criterion is about: what only
// stands in a source is what the subject may lack. "Not met" is by any line.
func (a Answer) shows(what string) bool {
	if a.Counted != what {
		return false
	}
	if what == Met {
		return a.Unquoted || slices.ContainsFunc(a.Quotes, func(q Quote) bool { return q.In == Subject })
	}
	return len(a.Quotes) > 0
}

// saysMissing is a "not met" that rests on nothing that could be shown, and on nothing made up either: what is missing cannot be quoted.
func (a Answer) saysMissing() bool {
	return a.Said == NotMet && len(a.Quotes) == 0 && len(a.Missing) == 0
}
