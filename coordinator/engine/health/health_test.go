package health

import (
	"fmt"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 29, 18, 0, 0, 0, time.UTC)

func (c *Circuits) open(node, digest string, now time.Time) bool {
	_, _, model := c.Open(Subject{node, digest}, now)
	_, _, whole := c.Open(Subject{node, ""}, now)
	return model || whole
}

func TestEachKindOpensWhatItSpeaksAgainst(t *testing.T) {
	for kind, want := range map[string]struct {
		model, other int // failures after which the model, another model there, may not be started; 0: never
	}{
		"ollama_unreachable":        {3, 3},
		"cannot_send":               {3, 3},
		"busy":                      {3, 3},
		"server_error":              {3, 0},
		"out_of_memory":             {2, 0},
		"stalled":                   {2, 0},
		"load_failed":               {2, 0},
		"schema_violation":          {0, 0}, // the model's fault, wherever it runs
		"input_too_long":            {0, 0}, // the request's
		"cancelled":                 {0, 0},
		"node_lost":                 {0, 0},
		"node_paused":               {0, 0},
		"text_instead_of_structure": {0, 0},
	} {
		var c Circuits
		model, other := 0, 0
		for i := 1; i <= 5; i++ {
			c.Failed("den", "m", kind, fmt.Sprint("item ", i), start)
			if model == 0 && c.open("den", "m", start) {
				model = i
			}
			if other == 0 && c.open("den", "other", start) {
				other = i
			}
			if c.open("attic", "m", start) {
				t.Errorf("%s on one node closed another", kind)
			}
		}
		if model != want.model || other != want.other {
			t.Errorf("%s: closed after %d, another model after %d; want %d and %d", kind, model, other, want.model, want.other)
		}
	}
}

// A request that kills every runner must not take the model away from everybody else.
func TestOnePoisonedRequestOpensNothing(t *testing.T) {
	var c Circuits
	for range 10 {
		if _, opened := c.Failed("den", "m", "server_error", "the same item", start); opened {
			t.Fatal("opened")
		}
	}
	if _, opened := c.Failed("den", "m", "server_error", "another item", start); !opened {
		t.Error("two requests fail, and one of them eleven times in a row: still not opened")
	}
}

func TestASuccessEndsTheRow(t *testing.T) {
	var c Circuits
	for i := range 20 {
		c.Failed("den", "m", "server_error", fmt.Sprint(i), start)
		c.Failed("den", "m", "server_error", fmt.Sprint(i, "again"), start)
		c.Succeeded("den", "m")
	}
	if c.open("den", "m", start) {
		t.Error("opened by failures that were not in a row")
	}
}

func opened(c *Circuits, now time.Time) {
	for i := range 3 {
		c.Failed("den", "m", "server_error", fmt.Sprint(i), now)
	}
}

func TestHalfOpenLetsOneCallThrough(t *testing.T) {
	var c Circuits
	opened(&c, start)
	if c.Start("den", "m", start.Add(firstPause-1)) {
		t.Error("started while open")
	}
	now := start.Add(firstPause)
	if first, second := c.Start("den", "m", now), c.Start("den", "m", now); !first || second {
		t.Error("want exactly one call to see")
	}
	if until, kind, open := c.Open(Subject{"den", "m"}, now); !open || kind != "server_error" || !until.After(now) {
		t.Errorf("%v %s %v", until, kind, open)
	}
	c.Succeeded("den", "m")
	for range 3 {
		if !c.Start("den", "m", now) {
			t.Error("still closed after a success")
		}
	}
}

func TestAFailedProbeDoublesThePause(t *testing.T) {
	var c Circuits
	opened(&c, start)
	now, pause := start, firstPause
	for range 8 {
		now = now.Add(pause)
		if !c.Start("den", "m", now) {
			t.Fatalf("closed after %s", pause)
		}
		if _, opened := c.Failed("den", "m", "server_error", "probe", now); !opened {
			t.Fatal("a failed probe did not open it again")
		}
		pause = min(2*pause, lastPause)
		if c.Start("den", "m", now.Add(pause-1)) {
			t.Errorf("open for less than %s", pause)
		}
		if at := c.Next(now); !at.Equal(now.Add(pause)) {
			t.Errorf("next at %s, want %s", at, now.Add(pause))
		}
	}
}

// A probe whose run was cancelled has shown nothing: the next call is one.
func TestACancelledProbeFreesItsPlace(t *testing.T) {
	var c Circuits
	opened(&c, start)
	now := start.Add(firstPause)
	c.Start("den", "m", now)
	c.Failed("den", "m", "cancelled", "x", now)
	if !c.Start("den", "m", now) {
		t.Error("nobody may see any more")
	}
}

// Calls that had begun before the circuit opened fail later; they are no news.
func TestLateFailuresDoNotLengthenThePause(t *testing.T) {
	var c Circuits
	opened(&c, start)
	for i := range 4 {
		c.Failed("den", "m", "server_error", fmt.Sprint("late ", i), start.Add(time.Second))
	}
	if !c.Start("den", "m", start.Add(firstPause)) {
		t.Error("late failures kept it open")
	}
}
