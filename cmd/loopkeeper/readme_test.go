package main_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the README's table from docs/placement.md")

// The part of docs/placement.md that the README shows.
var (
	shownPolicies  = []string{"workload", "loopkeeper", "round-robin, no fit", "least-connections", "loaded-first", "early ECT", "late FIFO"}
	shownWorkloads = []string{"orchestrated, A+B", "mixed, A+B", "home", "conversations", "alternation", "wave", "embedding storm", "machine lost", "huge batch"}
)

const (
	tableBegins = "<!-- placement: written by make bench-placement -->\n"
	tableEnds   = "<!-- /placement -->\n"
)

// The README's numbers are those that were measured last.
func TestReadmeShowsWhatWasMeasured(t *testing.T) {
	root := filepath.Join("..", "..")
	measured, err := os.ReadFile(filepath.Join(root, "docs", "placement.md"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "README.md")
	readme, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(readme), tableBegins)
	shown, after, ends := strings.Cut(rest, tableEnds)
	want := shortTable(t, string(measured))
	switch {
	case !begins || !ends:
		t.Fatal("the README has no place for the table")
	case shown == want:
	case *update:
		if err := os.WriteFile(path, []byte(before+tableBegins+want+tableEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the README's table is not that of docs/placement.md: go test ./cmd/loopkeeper -run Readme -update\n%s", want)
	}
}

// shortTable keeps some rows and columns of the first table.
func shortTable(t *testing.T, measured string) string {
	t.Helper()
	cells := func(line string) []string {
		var out []string
		for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
			out = append(out, strings.TrimSpace(c))
		}
		return out
	}
	lines := strings.Split(measured, "\n")
	head := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "| workload |") })
	if head < 0 {
		t.Fatal("docs/placement.md has no table by workload")
	}
	var columns []int
	for _, p := range shownPolicies {
		columns = append(columns, slices.Index(cells(lines[head]), p))
	}
	if slices.Contains(columns, -1) {
		t.Fatalf("docs/placement.md lacks one of %v", shownPolicies)
	}
	var b strings.Builder
	b.WriteString("| " + strings.Join(shownPolicies, " | ") + " |\n|---" + strings.Repeat("|--:", len(columns)-1) + "|\n")
	for _, workload := range shownWorkloads {
		i := slices.IndexFunc(lines[head:], func(l string) bool { return strings.HasPrefix(l, "| "+workload+" |") })
		if i < 0 {
			t.Fatalf("docs/placement.md lacks %s", workload)
		}
		row := cells(lines[head+i])
		for _, c := range columns {
			b.WriteString("| " + row[c] + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}
