package ui

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/judges"
)

// verdict is what a judge concluded, see docs/requests.md.
type verdict struct {
	Verdict  string            `json:"verdict"`
	Reasons  []string          `json:"reasons"`
	Facts    []json.RawMessage `json:"facts"`
	Opinions []json.RawMessage `json:"opinions"`
}

// verdictText is a judge's conclusion and its first reason.
func verdictText(raw []byte) string {
	var v verdict
	if json.Unmarshal(raw, &v) != nil || v.Verdict == "" {
		return ""
	}
	text := judges.Conclude(raw).String()
	if len(v.Reasons) > 0 {
		text += ": " + v.Reasons[0]
	}
	return text
}

// Asked is what an attempt was asked and what it answered, in full, and of a judge what it concluded and on which quotes.
// "" when full is false.
func Asked(e Event, prompt, reply string, full bool) string {
	if !full {
		return ""
	}
	var b strings.Builder
	for _, part := range []struct{ head, text string }{{"asked", prompt}, {"answered", reply}, {"concluded", judgement(e.Verdict)}} {
		if strings.TrimSpace(part.text) != "" {
			fmt.Fprintf(&b, "  %s:\n  %s\n", part.head, hanging(indented(part.text)))
		}
	}
	return b.String()
}

// judgement lays a verdict out: facts are quotes that code found in the source, opinions are not.
func judgement(raw []byte) string {
	var v verdict
	if json.Unmarshal(raw, &v) != nil || v.Verdict == "" {
		return ""
	}
	lines := []string{Line(judges.Conclude(raw).String())}
	for _, r := range v.Reasons {
		lines = append(lines, "reason: "+r)
	}
	for _, f := range v.Facts {
		lines = append(lines, "found in the source: "+said(f))
	}
	for _, o := range v.Opinions {
		lines = append(lines, "only said: "+said(o))
	}
	return strings.Join(lines, "\n")
}

// concluded is a verdict among the values of a run, in words: who gave it, by which rule, and why. Its lines and what its judges said are
// counted only; "" for a value that is none.
func concluded(value map[string]any) string {
	if value["verdict"] == nil || value["rule"] == nil || value["judges"] == nil {
		return ""
	}
	raw, err := json.Marshal(value)
	var v verdict
	if err != nil || json.Unmarshal(raw, &v) != nil {
		return ""
	}
	text := judges.Conclude(raw).String()
	if text == "" {
		return ""
	}
	lines := []string{Line(text)}
	for _, r := range v.Reasons {
		lines = append(lines, "reason: "+Line(r))
	}
	return strings.Join(append(lines, fmt.Sprintf("it rests on %s found in the source; the judges made %s", Plural(int64(len(v.Facts)), "line", "lines"),
		Plural(int64(len(v.Opinions)), "remark", "remarks"))), "\n")
}

// said is a fact or an opinion: a quote with what it is to show, or a sentence.
func said(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	return strings.ReplaceAll(Value(v), "\n", ", ")
}
