package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// ItemResult is one item's result as it stands in a results file.
type ItemResult struct {
	Type        string `json:"type,omitempty"` // "item" between status and summary objects
	Key         string `json:"key"`
	State       string `json:"state"`
	Value       any    `json:"value,omitempty"`
	Text        string `json:"text,omitempty"`
	FailureKind string `json:"failure_kind,omitempty"`
	Failure     string `json:"failure,omitempty"`
	Attempts    int32  `json:"attempts"`
	Node        string `json:"node,omitempty"`
	Simulated   bool   `json:"simulated,omitempty"`
}

// Item makes the result of an item.
func Item(i *coordinatorv1.Item) ItemResult {
	return ItemResult{Key: i.GetKey(), State: i.GetState(), Value: Raw(i.GetValueJson()), Text: i.GetText(), FailureKind: i.GetFailureKind(),
		Failure: i.GetFailure(), Attempts: i.GetAttempts(), Node: i.GetNode(), Simulated: i.GetSimulated()}
}

// ItemBlock is an item's result for people to read.
func ItemBlock(s Style, i *coordinatorv1.Item) string {
	facts := []string{s.State(i.GetState())}
	if i.GetNode() != "" {
		facts = append(facts, "node "+Line(i.GetNode()))
	}
	if i.GetAttempts() > 1 {
		facts = append(facts, fmt.Sprintf("%d attempts", i.GetAttempts()))
	}
	if i.GetSimulated() {
		facts = append(facts, s.Warn("simulated"))
	}
	body := i.GetText()
	switch {
	case i.GetFailureKind() != "":
		body = KindText(i.GetFailureKind()) + ": " + i.GetFailure()
	case len(i.GetValueJson()) > 0:
		body = Indent(i.GetValueJson())
	}
	return fmt.Sprintf("%s  %s\n%s\n", Line(i.GetKey()), strings.Join(facts, "  "), indented(body))
}

// Indent lays JSON out for people.
func Indent(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

func indented(text string) string {
	lines := strings.Split(strings.TrimSpace(Text(text)), "\n")
	return "  " + strings.Join(lines, "\n  ")
}
