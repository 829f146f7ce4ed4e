package cli

import (
	"bytes"
	"regexp"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// Each change is said once, and what is known from before the start is not news.
func TestATellerSaysEachChangeOnce(t *testing.T) {
	var out bytes.Buffer
	tell := newTeller(&out)
	den := func(state string) *coordinatorv1.Node {
		return &coordinatorv1.Node{Id: "den-1", Name: "den", Address: "192.168.1.20:7701", State: state, FoundBy: "mdns"}
	}
	local := &coordinatorv1.Node{Id: "attic-1", Name: "attic", State: "up", FoundBy: "local"}
	here := func(candidates []string, nodes ...*coordinatorv1.Node) {
		tell.fleet(&coordinatorv1.ListNodesResponse{Nodes: append(nodes, local), Candidates: candidates})
	}
	run := func(state string) {
		r := &coordinatorv1.Run{Id: "7f3k", Workflow: "map", State: state, Items: &coordinatorv1.Counts{Total: 40, Succeeded: 12}}
		if state == "incomplete" {
			r.Ended = timestamppb.Now()
		}
		tell.work([]*coordinatorv1.Run{r})
		tell.began = true
	}
	silent := []string{"192.168.1.30:7701: no answer"}
	for range 2 {
		here(silent)
		run("running")
	}
	for _, state := range []string{"up", "up", "lost", "lost", "up"} {
		here(silent, den(state))
	}
	run("incomplete")
	run("incomplete")
	tell.work([]*coordinatorv1.Run{{Id: "8a2b", Workflow: "plan", State: "completed", Ended: timestamppb.Now()}}) // too quick to be seen open
	want := `192.168.1.30:7701: no answer
run 7f3k goes on: map, 12 of 40
node den joined: 192.168.1.20:7701, found by mdns
node den is lost: it no longer reports, and its work goes elsewhere
node den is back: 192.168.1.20:7701
run 7f3k incomplete: map, 12 of 40
run 8a2b completed: plan
`
	got := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d (not a node of this fleet: )?`).ReplaceAllString(out.String(), "")
	if got != want {
		t.Fatalf("told:\n%s\nwant:\n%s", got, want)
	}
}

func TestNearModels(t *testing.T) {
	have := []string{"bge-m3:latest", "llama3.2:3b", "qwen3:14b", "qwen3:8b"}
	for name, want := range map[string][]string{
		"qwen3:32b": {"qwen3:14b", "qwen3:8b"}, "qwen:8b": {"qwen3:14b", "qwen3:8b"}, "lama3.2:3b": {"llama3.2:3b"}, "mistral:7b": nil,
	} {
		if got := nearest(name, have); len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
			t.Errorf("near %s: %v, want %v", name, got, want)
		}
	}
}

// What is advised must be what a shell understands as the user meant it.
func TestACommandIsQuotedAndChanged(t *testing.T) {
	a := &app{args: []string{"map", "--first", "3", "--prompt", "It's: {{item}}", "--out=a.jsonl", "--yes", "docs/*.md"}}
	got := a.commandWithout([]string{"--first=", "--out=", "--yes"}, "--skip", "3")
	want := `loopkeeper map --prompt 'It'\''s: {{item}}' 'docs/*.md' --skip 3`
	if got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// A setting that speaks of no model that is there is said once, when the machines had time to come.
func TestSettingsAreComparedOnce(t *testing.T) {
	var out bytes.Buffer
	tell := newTeller(&out)
	tell.settings.Models.Contexts = map[string]int{"qwen:8b": 4096, "qwen3:8b": 4096}
	den := &coordinatorv1.Node{Id: "den-1", Name: "den", State: "up", Report: &workerv1.NodeReport{Models: []*workerv1.Model{{Name: "qwen3:8b"}}}}
	for range compareAfter - 1 {
		tell.compare(&coordinatorv1.ListNodesResponse{})
	}
	for range compareAfter {
		tell.compare(&coordinatorv1.ListNodesResponse{Nodes: []*coordinatorv1.Node{den}})
	}
	if got := regexp.MustCompile(`warning: models.contexts in the settings speaks of qwen:8b, which no machine has yet; there is qwen3:8b\n`).FindAllString(out.String(), -1); len(got) != 1 {
		t.Errorf("said %q", out.String())
	}
}
