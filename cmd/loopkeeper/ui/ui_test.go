package ui

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

var rewrite = flag.Bool("rewrite", false, "write the screens in testdata anew")

// golden compares a screen with testdata/NAME.txt.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

var noon = time.Date(2026, 11, 5, 12, 0, 0, 0, time.Local) // a Thursday

func at(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(d)) }

func gib(n float64) *uint64 {
	b := uint64(n * (1 << 30))
	return &b
}

// aRun is under way: some items ended, some failed, some are in flight on two nodes.
func aRun() *coordinatorv1.Run {
	return &coordinatorv1.Run{Id: "7f3k", Workflow: "map", State: "running", Created: at(-41 * time.Minute), Started: at(-41 * time.Minute),
		Items:        &coordinatorv1.Counts{Total: 400, Succeeded: 312, Failed: 4, Running: 2, Waiting: 82, Retried: 20},
		PromptTokens: 1_210_000, OutputTokens: 214_000, Calls: 340, Seed: 41, ScriptSha256: strings.Repeat("9c1e", 16), Simulated: true,
		Waiting: []*coordinatorv1.Reason{{WaitingFor: "slot", Count: 82, Why: "every slot of qwen3:8b is busy"}},
		InFlight: []*coordinatorv1.InFlight{
			{Node: "attic", Model: "qwen3:8b", Attempt: 1, Label: "docs/a/very/long/path/to/adr/0017-leases.md", Tokens: 412, TokensPerSecond: 78.1, Since: at(-5 * time.Second), Phase: "writing"},
			{Node: "den", Model: "qwen3:8b", Attempt: 2, Label: "docs/net.md", Since: at(0), Phase: "prompt"},
		},
		Nodes: []*coordinatorv1.NodeShare{
			{NodeId: "attic-1", Name: "attic", Items: 200, FailedTries: 6, OutputTokens: 150_000, OutputNanos: 1_923e9, Simulated: true},
			{NodeId: "den-1", Name: "den", Items: 112, FailedTries: 14, OutputTokens: 64_000, OutputNanos: 1_049e9},
		},
		Failures: []*coordinatorv1.FailureGroup{{Kind: "schema_violation", Message: "/line: want integer", Count: 3, RetryHelps: true,
			Items: []string{"errors.md", "api.md", "\x1b[31mred.md"}, Next: []string{"loosen the schema"}},
			{Kind: "truncated", Message: "2,048 tokens", Count: 1, Items: []string{"big.md"}}},
		Steps: []*coordinatorv1.Step{{Id: "0", Kind: "batch", State: "running", Model: "qwen3:8b", Items: &coordinatorv1.Counts{Total: 400, Succeeded: 312},
			WaitingFor: "slot", Started: at(-41 * time.Minute)}},
	}
}

func TestTheLiveViewFitsTheTerminal(t *testing.T) {
	rate := &Rate{}
	rate.Add(noon.Add(-10*time.Minute), 240)
	rate.Add(noon, 316)
	lines := Frame{Style: Style{Unicode: true}, Width: 79, Height: 24, Now: noon, Rate: rate, Hint: "Ctrl-C: detach or cancel"}.Lines(aRun())
	golden(t, "live", strings.Join(lines, "\n")+"\n")
	for _, size := range [][2]int{{79, 24}, {39, 10}, {19, 5}, {200, 60}} {
		many := aRun()
		for range 40 {
			many.InFlight = append(many.InFlight, many.InFlight[0])
		}
		lines := Frame{Style: Style{Colour: true}, Width: size[0], Height: size[1], Now: noon, Rate: rate, Hint: "hint"}.Lines(many)
		if len(lines) >= size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, l := range lines {
			if w := ansi.StringWidth(l); w > size[0] {
				t.Errorf("%v: a line of %d cells: %q", size, w, l)
			}
		}
	}
}

func TestARedrawErasesWhatItDrew(t *testing.T) {
	var out strings.Builder
	l := &Live{W: &out, Size: func() (int, int) { return 80, 24 }}
	l.Show(aRun(), noon)
	drawn := strings.Count(out.String(), "\n")
	out.Reset()
	l.Say("a word")
	if up := "\x1b[" + itoa(drawn) + "A\r\x1b[Ja word\n"; out.String() != up {
		t.Errorf("got %q, want %q", out.String(), up)
	}
	out.Reset()
	l.End(aRun(), noon)
	if strings.Contains(out.String(), "\x1b[") {
		t.Errorf("what was said is erased: %q", out.String())
	}
}

func itoa(n int) string { return Count(int64(n)) }

func TestPlainLinesSayATenthEach(t *testing.T) {
	var out strings.Builder
	l := &Lines{W: &out}
	r := aRun()
	for i := int64(0); i <= 400; i++ {
		r.Items = &coordinatorv1.Counts{Total: 400, Succeeded: i}
		l.Show(r, noon.Add(time.Duration(i)*50*time.Millisecond))
	}
	if got := strings.Count(out.String(), "\n"); got < 11 || got > 16 {
		t.Errorf("%d lines for a whole run:\n%s", got, out.String())
	}
	if !strings.Contains(out.String(), "12:00:00 run 7f3k running: map, simulated\n") || !strings.Contains(out.String(), " 100 %  400 of 400, 0 failed, ") {
		t.Errorf("got:\n%s", out.String())
	}
	out.Reset()
	l.Show(r, noon.Add(time.Hour))
	if out.Len() == 0 {
		t.Error("silent for an hour")
	}
}

func TestScreens(t *testing.T) {
	s := Style{Unicode: true}
	done := aRun()
	done.State, done.Ended, done.InFlight, done.Waiting = "incomplete", at(11*time.Minute), nil, nil
	golden(t, "summary", Summary(s, done, noon, 10))
	golden(t, "show", Show(s, aRun(), noon))
	old := aRun()
	old.Id, old.State, old.Created, old.Started, old.Ended, old.Failures, old.Simulated = "7et0", "completed", at(-60*time.Hour), at(-60*time.Hour), at(-57*time.Hour), nil, false
	old.Items = &coordinatorv1.Counts{Total: 1200, Succeeded: 1200}
	golden(t, "runs", Runs(s, []*coordinatorv1.Run{aRun(), done, old}, noon))
	golden(t, "nodes", Nodes(s, someNodes(), "mdns on every usable interface", noon))
	golden(t, "nodes-ascii", Nodes(Style{}, someNodes(), "off", noon))
	available := uint64(10 << 30)
	golden(t, "explain", Explain(s, &coordinatorv1.Explanation{Subject: "qwen3:32b", Summary: "waits for memory", WaitingFor: "memory",
		Need: &coordinatorv1.Need{WeightsBytes: 18 << 30, KvBytes: 2 << 30, MarginBytes: 1 << 29},
		Nodes: []*coordinatorv1.NodeVerdict{
			{Node: "attic", Verdict: "wait", NeedBytes: 21 << 30, AvailableBytes: &available, ShortBytes: 11 << 30, LargestContext: 4096, Evict: []string{"bge-m3"}, Why: "qwen3:8b is busy"},
			{Node: "shed", Verdict: "excluded", NeedBytes: 21 << 30, Why: "lost"},
		}}, noon))
}

// someNodes are one with models of ours and of others, one whose memory is unknown, and one that is lost.
func someNodes() *coordinatorv1.ListNodesResponse {
	report := func(name string, total, free *uint64) *workerv1.NodeReport {
		return &workerv1.NodeReport{Pools: []*workerv1.Pool{{Id: "host", Kind: "host", TotalBytes: gib(64)}, {Id: "gpu:1", Kind: "device", TotalBytes: total, FreeBytes: free}},
			Devices: []*workerv1.Device{{Name: name, PoolId: "gpu:1"}}}
	}
	mini := report("M4 Max", nil, nil)
	mini.Warnings = []*workerv1.Warning{{Code: "memory_unknown", Text: "the device does not tell its memory", Next: "set worker.hardware.memory"}}
	return &coordinatorv1.ListNodesResponse{Candidates: []string{"192.168.1.9:7701: runs 0.9.0 (next: update it)"}, Nodes: []*coordinatorv1.Node{
		{Id: "attic-1", Name: "attic", State: "up", Busy: 2, Report: report("RTX 3090", gib(23.7), gib(11)), Claims: []*coordinatorv1.Claim{
			{Model: "qwen3:8b", Bytes: 9 << 30}, {Model: "bge-m3", Bytes: 2 << 30, Loading: true}}},
		{Id: "mini-1", Name: "mini", State: "up", Simulated: true, Report: mini},
		{Id: "shed-1", Name: "shed", State: "lost", LastSeen: at(-14 * time.Minute), Report: report("RTX 3070", gib(7.8), gib(7)), Problem: "no report for 14m"},
	}}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{GiB(13636522803), "12.7"}, {Count(1200), "1,200"}, {Count(-1234567), "-1,234,567"}, {Count(999), "999"},
		{Tokens(1_210_000), "1.21 M"}, {Tokens(214_300), "214 k"}, {Tokens(812), "812"},
		{Duration(2 * time.Second), "2.0s"}, {Duration(41*time.Minute + 12*time.Second), "41m12s"}, {Duration(3*time.Hour + 7*time.Minute), "3h07m"},
		{Duration(-time.Second), "0.0s"}, {Age(14 * time.Minute), "14m"}, {Age(50 * time.Hour), "2d"},
		{Percent(399, 400), "99 %"}, {Percent(0, 0), "-"}, {Percent(400, 400), "100 %"},
		{Clock(noon.Add(-time.Hour), noon), "11:00"}, {Clock(noon.AddDate(0, 0, -2), noon), "Tue 12:00"}, {Clock(noon.AddDate(0, -1, 0), noon), "2026-10-05"},
		{Middle("docs/adr/0018-long-leases-pinning.md", 24), "docs/...eases-pinning.md"}, {Middle("short", 24), "short"},
		{Plural(1, "model", "models"), "1 model"}, {Line("a\nb\x1b[31mc\x07"), "a b<U+001B>[31mc<U+0007>"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// What a model or a file name says must not reach the terminal as a command.
func TestTextFromOutsideCannotSteerTheTerminal(t *testing.T) {
	evil := "\x1b]0;title\x07\x1b[2Jhello\u009b31m\r\nworld"
	item := &coordinatorv1.Item{Key: evil, State: "succeeded", Text: evil}
	for _, text := range []string{ItemBlock(Style{}, item), Value(map[string]any{"a": evil}), Output(evil, []any{evil}, nil, false)} {
		if strings.ContainsAny(text, "\x1b\x07\r\u009b") {
			t.Errorf("%q", text)
		}
		if !strings.Contains(text, "hello") || !strings.Contains(text, "world") {
			t.Errorf("the text itself is lost: %q", text)
		}
	}
}

func TestJSONKeepsNumbersAndUnknowns(t *testing.T) {
	n := someNodes().GetNodes()[1]
	pool := Plain(n)["report"].(map[string]any)["pools"].([]any)[1].(map[string]any)
	if pool["total_bytes"] != nil {
		t.Errorf("an unknown total is %v", pool["total_bytes"])
	}
	item := Plain(&coordinatorv1.Item{Index: 3, ValueJson: []byte(`{"big": 12345678901234567890}`)})
	var out strings.Builder
	if err := WriteJSONLine(&out, item); err != nil {
		t.Fatal(err)
	}
	if want := `"value":{"big":12345678901234567890}`; !strings.Contains(out.String(), want) || !strings.Contains(out.String(), `"index":3`) {
		t.Errorf("%s does not hold %s", out.String(), want)
	}
}

func TestBarsAddUp(t *testing.T) {
	s := Style{}
	for _, c := range []struct {
		want  string
		parts []Part
	}{
		{"..........", nil},
		{"#####%....", []Part{{0.5, Ours}, {0.1, Foreign}}},
		{"#.........", []Part{{0.001, Ours}}},
		{"##########", []Part{{0.99, Ours}, {0.01, Foreign}}},
	} {
		if got := s.Bar(10, c.parts...); got != c.want {
			t.Errorf("%v: %q, want %q", c.parts, got, c.want)
		}
	}
}
