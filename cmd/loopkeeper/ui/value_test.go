package ui

import (
	"strings"
	"testing"
)

// A verdict among the outputs is a sentence and its reasons, not its table; what only looks like one is shown as it is.
func TestAVerdictIsReadAsASentence(t *testing.T) {
	value := map[string]any{"verdict": "sent_back", "rule": "not_met", "reasons": []any{"not met: it is dated"}, "facts": []any{map[string]any{"line": 2}},
		"opinions": []any{"a", "b"}, "criteria": []any{}, "judges": []any{map[string]any{"model": "qwen3:8b", "calibration": "none"}}}
	got := Value(value)
	for _, want := range []string{"sent back by qwen3:8b (uncalibrated): ", "\nreason: not met: it is dated\n", "it rests on 1 line found in the source; the judges made 2 remarks"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	delete(value, "rule")
	if got := Value(value); !strings.Contains(got, "verdict: sent_back") {
		t.Errorf("%q", got)
	}
}
