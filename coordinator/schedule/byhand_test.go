package schedule

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func state(w *world, name string) State {
	var s stored
	if err := json.Unmarshal(w.stored[name], &s); err != nil {
		w.t.Fatal(err)
	}
	return s.State
}

// Berlin's clock goes forward on 2026-03-29 at 02:00.
func TestUpcomingTimes(t *testing.T) {
	now := time.Date(2026, 3, 28, 1, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		spec  Spec
		state State
		want  []string
	}{
		"over a change of the clock": {Spec{Cron: "30 2 * * *", Zone: "Europe/Berlin"}, NewState(now), []string{"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		"the grid of an interval":    {Spec{EverySeconds: 3600}, NewState(now.Add(-90 * time.Minute)), []string{"2026-03-28T01:30:00Z", "2026-03-28T02:30:00Z", "2026-03-28T03:30:00Z"}},
		"up to the limit":            {Spec{EverySeconds: 3600, MaxFirings: 3}, State{Created: now, Fired: 2}, []string{"2026-03-28T02:00:00Z"}},
		"beyond the limit":           {Spec{EverySeconds: 3600, MaxFirings: 3}, State{Created: now, Fired: 3}, nil},
		"paused":                     {Spec{EverySeconds: 3600}, NewState(now).Pause(now, "me", ""), nil},
		"a clock that was set back":  {Spec{Cron: "@daily"}, State{Created: now, Decided: now.Add(24 * time.Hour)}, []string{"2026-03-30T00:00:00Z", "2026-03-31T00:00:00Z", "2026-04-01T00:00:00Z"}},
		"a folder":                   {Spec{Watch: &Watch{Folder: "/in"}}, NewState(now), nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Name, c.spec.Workflow = "x", "map"
			spec, err := Complete(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			got := spec.Upcoming(c.state, now, 3)
			if len(got) != len(c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
			for i, at := range got {
				if want, _ := time.Parse(time.RFC3339, c.want[i]); !at.Equal(want) {
					t.Errorf("%d: %v, want %s", i, at, c.want[i])
				}
			}
		})
	}
}

// A run by hand is under way for the overlap policy, and no firing for the limit.
func TestRunByHandCountsAsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		v := w.add(Spec{Cron: "@hourly", MaxFirings: 2})
		f := v.ByHand(time.Now())
		if _, err := w.runner.Started(t.Context(), "test", f, "run by hand"); err != nil {
			t.Fatal(err)
		}
		w.sleep(61 * time.Minute)
		if s := state(w, "test"); len(w.runs) != 0 || s.Fired != 0 || len(s.Notes) != 1 {
			t.Errorf("started %v beside it: %+v", w.runs, s)
		}
		w.end("run by hand", "completed")
		w.sleep(time.Hour)
		if s := state(w, "test"); len(w.runs) != 1 || s.Fired != 1 {
			t.Errorf("after its end: %v, %+v", w.runs, s)
		}
		w.stop()
	})
}

// However soon after Add a file comes, it is a new one; what was there before is not.
func TestRunnerTakesWhatComesRightAfterAddForNew(t *testing.T) {
	folder := t.TempDir()
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before.md")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		w.add(Spec{Watch: &Watch{Folder: folder}})
		write("after.md")
		w.sleep(time.Minute)
		if known := state(w, "test").Known; len(w.runs) != 1 || known["after.md"].SHA256 == "" || known["before.md"].SHA256 != "" {
			t.Errorf("started %v, knows %v", w.runs, known)
		}
		w.stop()
	})
}
