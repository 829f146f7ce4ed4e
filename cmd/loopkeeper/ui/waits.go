package ui

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// asks are the kinds of a wait for people.
var asks = map[string]string{"approve": "approval", "unknown": "did it happen?"}

// Waits is the table of what waits for a person.
func Waits(s Style, waits []*coordinatorv1.Wait, now time.Time) string {
	if len(waits) == 0 {
		return "Nothing waits for a person.\n"
	}
	t := Table{Width: s.Width, Columns: Columns("RUN", ">STEP", "/WORKFLOW", "KIND", ">FOR", "~ASKED", "~ANSWERS ITSELF")}
	for _, w := range waits {
		t.Add(w.GetRunId(), w.GetStep(), Line(w.GetWorkflow()), word(asks, w.GetKind()), Age(now.Sub(w.GetSince().AsTime())), Line(w.GetTitle()), itself(w, now))
	}
	return t.String()
}

// itself says when a wait is answered without anybody, and how.
func itself(w *coordinatorv1.Wait, now time.Time) string {
	if w.GetUntil() == nil {
		return "never"
	}
	return Clock(w.GetUntil().AsTime(), now) + ": " + Line(answerText(w.GetOnTimeoutJson()))
}

// answerText is an answer as people read it.
func answerText(raw []byte) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "-"
	}
	return Line(strings.ReplaceAll(Value(v), "\n", " "))
}

// Body is something to look at: its name, and its text where that is known.
type Body struct{ Name, Text string }

// shownLines is how much of a body to look at stands in the inbox.
const shownLines = 12

// Wait is one wait in full: what is asked, what happens then, and what to look at.
func Wait(s Style, w *coordinatorv1.Wait, show []Body, now time.Time) string {
	var b strings.Builder
	b.WriteString(s.headline([]string{fmt.Sprintf("run %s  step %s  %s", w.GetRunId(), w.GetStep(), word(asks, w.GetKind())), Line(w.GetTitle())}))
	for _, p := range [][2]string{
		{"workflow", Line(w.GetWorkflow())}, {"label", Line(w.GetLabel())}, {"since", Clock(w.GetSince().AsTime(), now)},
		{"then", Line(w.GetWill())}, {"choices", Line(strings.Join(w.GetChoices(), ", "))}, {"schema", string(w.GetSchemaJson())},
		{"itself", itself(w, now)},
	} {
		b.WriteString(s.fact(p[0], p[1]))
	}
	if w.GetText() != "" {
		b.WriteString("\n" + strings.TrimRight(Text(w.GetText()), "\n") + "\n")
	}
	for _, body := range show {
		b.WriteString("\n" + Line(body.Name) + "\n" + Excerpt(Text(body.Text), shownLines) + "\n")
	}
	return b.String()
}
