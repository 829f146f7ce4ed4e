package player_test

import (
	"math"
	"testing"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay"
	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay/player"
)

// A player without faults does every task in every arm, so that what goes wrong with faults is theirs.
func TestWithoutFaultsEverythingSucceeds(t *testing.T) {
	for _, r := range play(t, player.Rates{}, relay.Options{Sizes: []int{3, 6}, Tasks: 1}).Records {
		if !r.Success || r.Error != "" || r.Cost.Calls == 0 || len(r.Failures) > 0 {
			t.Errorf("%+v", r)
		}
	}
}

// counts are the metrics of one cell by name; a share of runs counts like a rate.
func counts(c relay.Cell) map[string]relay.Interval {
	return map[string]relay.Interval{"dropped": c.Dropped, "duplicated": c.Duplicated, "hallucinated": c.Hallucinated, "fabricated": c.Fabricated,
		"printed": *c.Printed, "empty": *c.Empty, "no end": c.NoEnd, "early": c.Early, "poisoned": c.Poisoned}
}

// fanOut plays one arm with the loop in the model, on tasks whose calls do not rest on each other.
func fanOut(t *testing.T, rates player.Rates, size, tasks int) (relay.Cell, []relay.Record) {
	t.Helper()
	o := relay.Options{Sizes: []int{size}, Tasks: tasks, Families: []relay.Family{relay.FanOut}, Arms: []relay.Arm{relay.InModel}}
	r := play(t, rates, o)
	return relay.Sum(o, r).BySize[0], r.Records
}

// Each fault alone is found at its rate, and moves no other count. What goes beyond two nudges ends a run, which drops calls: those
// runs are left out where the others are looked at.
func TestEachFaultMovesItsOwnMetric(t *testing.T) {
	usual := player.Usual
	for _, c := range []struct {
		metric string
		rates  player.Rates
		want   float64
	}{
		{"dropped", player.Rates{Drop: usual.Drop}, usual.Drop},
		{"duplicated", player.Rates{Duplicate: usual.Duplicate}, usual.Duplicate},
		{"fabricated", player.Rates{Invent: usual.Invent}, usual.Invent},
		{"printed", player.Rates{Text: usual.Text}, usual.Text},
		{"empty", player.Rates{Empty: usual.Empty}, usual.Empty},
	} {
		cell, records := fanOut(t, c.rates, 5, 40)
		if got := counts(cell)[c.metric]; !got.Holds(c.want) {
			t.Errorf("%s: %+v does not hold %g", c.metric, got, c.want)
		}
		for _, r := range records {
			if r.Printed+r.Empty > 2 {
				continue
			}
			other := map[string]bool{"dropped": r.Dropped > 0, "duplicated": r.Duplicated > 0, "fabricated": r.Fabricated > 0, "printed": r.Printed > 0,
				"empty": r.Empty > 0, "hallucinated": r.Hallucinated > 0, "no end": r.NoEnd, "early": r.Early > 0}
			delete(other, c.metric)
			for metric, moved := range other {
				if moved {
					t.Errorf("%s moves %s: %+v", c.metric, metric, r)
				}
			}
			if r.Premature != (r.Dropped > 0) || r.Success != (r.Dropped == 0 && r.Fabricated == 0) {
				t.Errorf("%s: %+v", c.metric, r)
			}
		}
	}
}

// All faults together are told apart. A call that is dropped is not made twice, and a run that was ended for its turns drops what was left.
func TestFaultsTogetherAreToldApart(t *testing.T) {
	u := player.Usual
	cell, _ := fanOut(t, u, 3, 200)
	for metric, want := range map[string]float64{"duplicated": u.Duplicate * (1 - u.Drop), "fabricated": u.Invent, "printed": u.Text, "empty": u.Empty,
		"hallucinated": 0, "no end": 0, "early": 0} {
		if got := counts(cell)[metric]; !got.Holds(want) {
			t.Errorf("%s: %+v does not hold %g", metric, got, want)
		}
	}
	if d := cell.Dropped; d.High < u.Drop || d.Low > u.Drop+0.02 {
		t.Errorf("dropped: %+v", d)
	}
}

// Where code keeps the loop the faults of single calls are sent back and made good, and each is counted under its own kind.
func TestInCodeEveryTaskEndsWell(t *testing.T) {
	o := relay.Options{Sizes: []int{3, 8}, Tasks: 2, Arms: []relay.Arm{relay.InCode, relay.InCodeGold}}
	calls, failed := 0, map[string]int{}
	for _, r := range play(t, player.Usual, o).Records {
		if !r.Success {
			t.Errorf("%+v", r)
		}
		calls += r.Cost.Calls
		for kind, n := range r.Failures {
			failed[kind] += n
		}
	}
	for kind, want := range map[string]float64{"schema_violation": player.Usual.Schema, "argument": player.Usual.Argument} {
		if !near(failed[kind], calls, want) {
			t.Errorf("%s: %d of %d is not %g", kind, failed[kind], calls, want)
		}
	}
}

// near says whether a rate is within its interval of 99.9 %: which prompt comes how often before others is not the same in each run of
// a coordinator, so this must not fail once in twenty times.
func near(hits, of int, want float64) bool {
	n := float64(of)
	return math.Abs(float64(hits)-n*want) <= 3.3*math.Sqrt(n*want*(1-want))+1
}
