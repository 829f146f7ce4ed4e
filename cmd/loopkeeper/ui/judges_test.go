package ui

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func TestJudgesForPeopleAndPrograms(t *testing.T) {
	now := time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)
	rate := func(hits, of int32) *coordinatorv1.Rate {
		return &coordinatorv1.Rate{Hits: hits, Of: of, Low: 0.5, High: 0.9}
	}
	judge := &coordinatorv1.Judge{Model: "qwen3:8b", Gate: "advisory", Subjects: 30, Margin: 0.14, Passed: rate(29, 30), Found: rate(20, 30), Abstained: rate(0, 60),
		Defects: map[string]*coordinatorv1.Rate{"wrong_number": rate(3, 5)}, Time: timestamppb.New(now)}
	text := Judges(Style{}, []*coordinatorv1.Judge{judge}, now)
	for _, want := range []string{"any   advisory  29/30 (0.50-0.90)", "30: ±0.14", "qwen3:8b: its \"met\" counts for nothing: of 100 defects it would miss 33\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nlacks %q", text, want)
		}
	}
	judge.Stale = "the prompts of judges have changed since"
	if text = Judges(Style{}, []*coordinatorv1.Judge{judge}, now); !strings.Contains(text, "stale: the prompts") || !strings.Contains(text, "any   none") || strings.Contains(text, "passes nothing") {
		t.Errorf("one that no longer holds:\n%s", text)
	}
	plain := Plain(judge)
	if found := plain["defects"].(map[string]any)["wrong_number"].(map[string]any); found["hits"] != int32(3) || plain["same"] != nil {
		t.Errorf("as JSON: %v", plain)
	}
}
