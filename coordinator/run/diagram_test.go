package run

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var arrow = regexp.MustCompile(`(?m)^\s+(\w+) --> (\w+)`)

// TestDiagrams holds the README's diagrams to the transition tables.
func TestDiagrams(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```mermaid")
	if len(blocks) != 4 {
		t.Fatalf("README.md has %d diagrams, want one each of runs, steps and phases", len(blocks)-1)
	}
	runs := edges(Statuses(), Status.Transitions)
	steps := edges(StepStatuses(), StepStatus.Transitions)
	phases := edges(PhaseStatuses(), PhaseStatus.Transitions)
	for i, want := range [][]string{runs, steps, phases} {
		var got []string
		block, _, _ := strings.Cut(blocks[i+1], "```")
		for _, m := range arrow.FindAllStringSubmatch(block, -1) {
			got = append(got, m[1]+" --> "+m[2])
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("diagram %d and the table differ:\ndiagram %q\ntable   %q", i, got, want)
		}
	}
}

func edges[S ~string](all []S, next func(S) []S) []string {
	var out []string
	for _, from := range all {
		for _, to := range next(from) {
			out = append(out, fmt.Sprintf("%s --> %s", from, to))
		}
	}
	slices.Sort(out)
	return out
}

// TestEnds holds the ends to DESIGN §5: nothing leaves them.
func TestEnds(t *testing.T) {
	var ends []Status
	for _, s := range Statuses() {
		if s.Ended() {
			ends = append(ends, s)
		}
	}
	want := []Status{Completed, Incomplete, Failed, TimedOut, Exhausted, Cancelled, Diverged}
	if !slices.Equal(ends, want) {
		t.Errorf("the ends are %q, want %q", ends, want)
	}
}
