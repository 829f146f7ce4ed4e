package ui

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// aPool is a card of which so much is used, in GiB.
func aPool(total, claims, foreign, reserve float64) []*coordinatorv1.PoolUse {
	return []*coordinatorv1.PoolUse{{Id: "gpu:1", Kind: "device", TotalBytes: gib(total), FreeBytes: gib(total - claims - foreign), ClaimsBytes: *gib(claims),
		ForeignBytes: *gib(foreign), ReserveBytes: *gib(reserve), AvailableBytes: gib(total - claims - foreign - reserve)}}
}

// aFleet is busy: one machine works and loads, one is paused, one is drained and downloads, one keeps failing.
func aFleet() *coordinatorv1.ListNodesResponse {
	node := func(name, state, device string, total, free float64) *coordinatorv1.Node {
		return &coordinatorv1.Node{Id: name + "-1", Name: name, State: state, Address: "192.168.1.20:7701", FoundBy: "mdns", Report: &workerv1.NodeReport{Slots: 2,
			Pools:   []*workerv1.Pool{{Id: "host", Kind: "host", TotalBytes: gib(64)}, {Id: "gpu:1", Kind: "device", TotalBytes: gib(total), FreeBytes: gib(free)}},
			Devices: []*workerv1.Device{{Name: device, PoolId: "gpu:1"}}, Ollama: &workerv1.Ollama{Reachable: true, Version: "0.17.4"}, Models: []*workerv1.Model{{Name: "qwen3:8b"}}}}
	}
	attic := node("attic", "up", "RTX 3090", 23.7, 11)
	attic.Pools, attic.MaxCalls, attic.Busy = aPool(23.7, 14.2, 1.4, 0.2), 4, 2
	attic.Claims = []*coordinatorv1.Claim{
		{Model: "qwen3:8b", Bytes: *gib(9), Context: 8192, Busy: 2, Slots: 2, Pinned: true, Since: at(-40 * time.Minute), VramBytes: gib(9)},
		{Model: "bge-m3:latest", Bytes: *gib(1.2), Context: 8192, Slots: 1, Foreign: true, Since: at(-2 * time.Hour), Idle: at(-time.Hour), VramBytes: gib(1)},
		{Model: "qwen3:14b", Bytes: *gib(4), Loading: true, Slots: 2, Since: at(-9 * time.Second)}}
	attic.Incidents = []*coordinatorv1.Incident{
		{Time: at(-3 * time.Minute), Kind: "vanished", Model: "llama3.2:3b", Text: "llama3.2:3b is gone from the memory of attic, where it was since 11:20:04, and nobody here unloaded it: another program loaded bge-m3, and Ollama made room for it"},
		{Time: at(-26 * time.Hour), Kind: "use", Text: "attic is used again"}}
	den := node("den", "paused", "RTX 4070 Ti", 11.6, 11.4)
	den.Why, den.Until, den.Pools = "paused until 2026-11-05 14:00", at(2*time.Hour), aPool(11.6, 0, 0.2, 2)
	shed := node("shed", "draining", "RTX 3070", 7.8, 3)
	shed.Why, shed.Pulls = "draining: it takes nothing new until it is resumed", []*coordinatorv1.Pull{{Model: "qwen3:8b", CompletedBytes: 42, TotalBytes: 100}}
	mini := node("mini", "degraded", "M4 Max", 48, 40)
	mini.Why, mini.Until = "not used for a while, because calls there failed in a row (timeout)", at(40*time.Second)
	return &coordinatorv1.ListNodesResponse{Nodes: []*coordinatorv1.Node{attic, den, mini, shed},
		Waiting:   []*coordinatorv1.ModelQueue{{Model: "qwen3:32b", Waiting: 8, WaitingFor: "memory"}, {Model: "qwen3:8b", Waiting: 1070, WaitingFor: "slot"}},
		Resources: []*coordinatorv1.ResourceUse{{Name: "http:example.org", Cap: 2, InUse: 2, Rate: 0.5, Waiting: 14}, {Name: "model:qwen3:8b", Rate: 2, NextNanos: 3e8, InUse: 1}},
		Findings: []*coordinatorv1.Finding{{Code: "digest_conflict", Model: "qwen3:8b", Next: []string{"loopkeeper models pull qwen3:8b --everywhere"},
			Text: "qwen3:8b is not the same model everywhere: 500a1f067a9f on attic, e4b5fd7f8af0 on den; a run keeps to the one that it began with, and to the machines that have it"}},
		Suggestions: []*coordinatorv1.Suggestion{{Model: "qwen3:8b", Node: "mini", Command: "loopkeeper models pull qwen3:8b --on mini",
			Why: "1070 items wait, about 41 min; with mini too, which has it in about 6 min, they end 11 min sooner"}}}
}

func aFit() *coordinatorv1.FitResponse {
	need := &coordinatorv1.Need{WeightsBytes: *gib(18.8), KvBytes: *gib(2), GraphBytes: *gib(0.6), ConstantBytes: *gib(0.4), MarginBytes: *gib(0.1)}
	return &coordinatorv1.FitResponse{Model: "qwen3:32b", Digest: "d", Context: 8192, Trained: 40960, Nodes: []*coordinatorv1.NodeFit{
		{Node: "attic", State: "up", Pulled: true, Verdict: "evict", Slots: 1, Devices: 1, Need: need, Pools: aPool(23.7, 12.2, 0.4, 0.2), AvailableBytes: gib(23.1), LargestContext: 12544, LargestEmpty: 13056,
			Evict: []*coordinatorv1.Eviction{{Model: "qwen3:8b", Bytes: *gib(9), Busy: 2}, {Model: "bge-m3:latest", Bytes: *gib(1.2)}}},
		{Node: "den", State: "paused", Verdict: "no", Slots: 1, Devices: 1, Need: need, Pools: aPool(11.6, 0, 0.2, 2), AvailableBytes: gib(9.6), ShortBytes: *gib(12.3), Why: "needs 21.9 GiB at 8192 tokens, has 9.6 GiB when empty"},
		{Node: "mini", State: "up", Verdict: "yes", Slots: 1, Need: need, Pools: aPool(48, 0, 8, 4.8), AvailableBytes: gib(35.2), LargestContext: 40960, LargestEmpty: 40960},
		{Node: "heap", State: "up", Pulled: true, Verdict: "blocked", Slots: 1, Need: need, Pools: aPool(23.7, 1.2, 9.4, 0.2), AvailableBytes: gib(12.9), ShortBytes: *gib(9), LargestEmpty: 13056, Why: "what takes the rest stays"},
		{Node: "shed", State: "lost", Verdict: "unknown", Slots: 1, Why: "its memory is not known"},
	}}
}

func TestPlacementScreensFitEightyColumns(t *testing.T) {
	s := Style{Unicode: true, Width: 80}
	fleet := aFleet()
	available := uint64(23 << 30)
	decided := &coordinatorv1.Explanation{Subject: "step 0, docs/errors.md", Summary: "qwen3:8b is loaded on attic, 0 of 2 slots were busy", At: at(-time.Minute), Action: "start",
		Nodes: []*coordinatorv1.NodeVerdict{
			{Node: "attic", Verdict: "chosen", NeedBytes: 7 << 30, AvailableBytes: &available, Why: "loaded, 0 of 2 slots busy", ServeNanos: 6.4e9},
			{Node: "mini", Verdict: "fits", NeedBytes: 7 << 30, AvailableBytes: &available, Why: "needs 7.0 GiB, 23.0 GiB available", WaitNanos: 2e9, LoadNanos: 14e9, ServeNanos: 9e9},
			{Node: "shed", Verdict: "excluded", Why: "draining: it takes nothing new until it is resumed"}}}
	for name, screen := range map[string]string{
		"fleet-80": Nodes(s, fleet, "mdns on every usable interface", noon),
		"node-80":  Node(s, fleet.GetNodes()[0], noon),
		"fit-80": Fit(s, aFit(), FitNews{LeftOut: map[string]string{"mini": "it did not fit there a short while ago; not tried again for 4m10s"},
			Stays: map[string][]string{"heap": {"bge-m3:latest, loaded by somebody else", "9.4 GiB of other programs"}}}),
		"decision-80": Decisions(s, []*coordinatorv1.Explanation{decided}, noon),
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, screen)
			for _, line := range strings.Split(screen, "\n") {
				if w := ansi.StringWidth(line); w > 80 {
					t.Errorf("%d cells: %s", w, line)
				}
			}
		})
	}
}

// What is not known is a question mark, never a zero.
func TestUnknownMemoryIsNoZero(t *testing.T) {
	n := aFleet().GetNodes()[0]
	n.Pools[0].TotalBytes, n.Pools[0].FreeBytes, n.Pools[0].AvailableBytes, n.Pools[0].ForeignBytes = nil, nil, nil, 0
	for _, line := range strings.Split(Node(Style{}, n, noon), "\n") {
		if strings.HasPrefix(line, "gpu:1") && strings.Join(strings.Fields(line), " ") != "gpu:1 ? 14.2 ? 0.2 ?" {
			t.Errorf("got %s", line)
		}
	}
}

// A download is a line that changes on a terminal, and a line at each tenth elsewhere; how it ended is always said.
func TestPullsOnATerminalAndElsewhere(t *testing.T) {
	told := func(node string, done uint64) *coordinatorv1.PullModelResponse {
		return &coordinatorv1.PullModelResponse{Node: node, Pull: &coordinatorv1.Pull{Status: "pulling", CompletedBytes: done * 1e9, TotalBytes: 5e9, BytesPerSecond: 50e6}}
	}
	final := func(p *Pulls) {
		p.Add(&coordinatorv1.PullModelResponse{Node: "den", Error: "the disk is full"}, noon)
		end := told("attic", 5)
		end.Done = true
		p.Add(end, noon)
	}
	var pipe bytes.Buffer
	p := &Pulls{W: &pipe}
	for range 3 {
		p.Add(told("attic", 1), noon)
	}
	p.Add(told("attic", 2), noon)
	final(p)
	if got, want := pipe.String(), "attic: 20 %, 1.0 of 5.0 GB, 50.0 MB/s, 1m20s left\nattic: 40 %, 2.0 of 5.0 GB, 50.0 MB/s, 1m00s left\nden: x the disk is full\nattic: . has it now, 5.0 GB\n"; got != want {
		t.Errorf("on a pipe:\n%swant:\n%s", got, want)
	}
	var screen bytes.Buffer
	p = &Pulls{W: &screen, Style: Style{Width: 80}, Live: true}
	p.Add(told("attic", 1), noon)
	p.Add(told("attic", 2), noon.Add(pullPause/2)) // too soon to be drawn
	final(p)
	frames := strings.Split(screen.String(), "\x1b[1A")
	if len(frames) != 2 || !strings.HasPrefix(frames[0], "\x1b[2Kattic  ####................   20 %  1.0 of 5.0 GB") ||
		!strings.HasSuffix(screen.String(), "\x1b[2A\x1b[2Kattic  . has it now, 5.0 GB\n\x1b[2Kden    x the disk is full\n") {
		t.Errorf("on a terminal: %q", screen.String())
	}
}

// A clock beside a decision has seconds today, and the day before that.
func TestDecisionsSayWhen(t *testing.T) {
	d := &coordinatorv1.Explanation{Subject: "step 0", Summary: "s", Action: "wait", At: timestamppb.New(noon.Add(-3 * time.Second))}
	if got := Explain(Style{}, d, noon); got != "11:59:57  step 0, waited: s\n" {
		t.Errorf("got %q", got)
	}
	if got := Explain(Style{}, d, noon.Add(48*time.Hour)); got != "Thu 11:59  step 0, waited: s\n" {
		t.Errorf("got %q", got)
	}
}
