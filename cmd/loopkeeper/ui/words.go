package ui

import (
	"fmt"
	"sort"
	"strings"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// This file has the words that people read for the names that JSON and the ledger use.

// waits says what each of the waiting reasons waits for.
var waits = map[string]string{
	"slot": "a free slot", "memory": "memory", "load": "a model to be loaded", "node": "a machine", "model": "a machine that has the model",
	"facts": "facts about a machine", "cap": "a limited resource", "rate": "the rate of a resource", "faster": "a faster machine", "retry": "a pause before the next try", "script": "a place for its script",
	"human": "a person", "timer": "a time", "children": "a child run", "tool": "a place for a tool",
}

// WaitText says what something waits for: "a free slot".
func WaitText(reason string) string { return word(waits, reason) }

// phases are what an attempt does at the moment.
var phases = map[string]string{"sent": "sending", "queued": "queued", "loading": "loading", "prompt": "reading", "writing": "writing"}

// kinds of failures whose name is a state of the books and no word of people.
var kinds = map[string]string{"sent_back": "sent back", "needs_human": "needs a person"}

// KindText is a failure's kind as people read it.
func KindText(kind string) string { return word(kinds, kind) }

// stateText is a state or a verdict as people read it: timed_out is "timed out".
func stateText(state string) string { return strings.ReplaceAll(state, "_", " ") }

func word(words map[string]string, name string) string {
	if w := words[name]; w != "" {
		return w
	}
	return name
}

// SettingText is the value of a setting: lists and tables as they are written on a command line, "-" for an empty one.
func SettingText(v any) string {
	switch v := v.(type) {
	case string:
		return orDash(v)
	case fmt.Stringer: // a size, a duration, a list that knows how
		return orDash(v.String())
	case nil:
		return "-"
	}
	text := fmt.Sprint(v)
	for _, open := range []string{"map[", "["} {
		if inner, ok := strings.CutPrefix(text, open); ok {
			parts := strings.Fields(strings.TrimSuffix(inner, "]"))
			sort.Strings(parts)
			return orDash(strings.Join(parts, ", "))
		}
	}
	return text
}

// waitsText says what the items that wait wait for: "82 waiting for a free slot", or each with its number.
func waitsText(r *coordinatorv1.Run) string {
	n, reasons := r.GetItems().GetWaiting(), r.GetWaiting()
	switch len(reasons) {
	case 0:
		return Count(n) + " waiting"
	case 1:
		return Count(n) + " waiting for " + WaitText(reasons[0].GetWaitingFor())
	}
	var each []string
	for _, w := range reasons {
		each = append(each, Count(w.GetCount())+" for "+WaitText(w.GetWaitingFor()))
	}
	return Count(n) + " waiting: " + strings.Join(each, ", ")
}
