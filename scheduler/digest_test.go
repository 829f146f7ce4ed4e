package scheduler

import (
	"strings"
	"testing"
)

// A run that began with one model of a name is never given another of that name, although that one is loaded and idle.
func TestARunNeverMixesTwoModelsOfOneName(t *testing.T) {
	mine, theirs := small, small
	theirs.Digest = "sha256:another"
	old, updated := gpuNode("alpha", 24, 23, mine), gpuNode("beta", 24, 23, theirs).load(loadedAt(theirs, 8192, 1, 0, 0))
	wait := tasks(1, small.Name, 0)
	wait[0].Digest = mine.Digest
	plan := Place(Snapshot{Now: noon, Nodes: []Node{old, updated}, Waiting: wait}, Limits{})
	for _, d := range plan.Decisions {
		if d.Node == "beta" || d.Action == Load && d.Digest != mine.Digest {
			t.Errorf("%s of %s on %s", d.Action, d.Digest, d.Node)
		}
	}
	if len(plan.Decisions) != 2 {
		t.Errorf("want a load on alpha and a task that waits for it, got\n%s", transcript(plan))
	}
	d := Place(Snapshot{Now: noon, Nodes: []Node{updated}, Waiting: wait}, Limits{}).Decisions[0]
	if d.Action != Wait || d.Why.Wait != WaitModel || !strings.Contains(d.Why.Summary, "never mixes two") || !strings.Contains(d.Why.Nodes[0].Why(), "another model of that name") {
		t.Errorf("with the other one alone: %s %s", d.Action, d.Why)
	}
}

// What a person keeps of one machine replaces the fleet's reserve.
func TestAPoolsOwnReserveCounts(t *testing.T) {
	n := gpuNode("alpha", 24, 24)
	n.Pools[1].Reserve = 4 << 30
	if got := Available(n, "gpu0", nil, Limits{}); got != known(20) {
		t.Errorf("available %+v with a reserve of 4 of 24 GiB", got)
	}
}
