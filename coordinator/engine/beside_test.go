package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// TestWhatStandsBesideTheEventsIsThereForWhoLooks: while steps follow fast their decisions are held back, but not from who asks for one, nor
// for long, nor beyond the end of the engine.
func TestWhatStandsBesideTheEventsIsThereForWhoLooks(t *testing.T) {
	p := flow(t, `for (let i = 0; i < 5; i++) await generate({ model: "small:8b", prompt: "fast", schema: Answer });
  for (let i = 0; i < 4; i++) { await generate({ model: "small:8b", prompt: "slow", schema: Answer }); await generate({ model: "small:8b", prompt: "fast", schema: Answer }); }`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.takes = func(a Attempt) time.Duration {
			if strings.Contains(string(a.Request), "slow") {
				return time.Hour
			}
			return 10 * time.Millisecond
		}
		r := newRig(t, f, Options{})
		id := r.submit(p, nil)
		stored := func(step int) int {
			t.Helper()
			rows, err := r.store.Decisions(t.Context(), id, step)
			if err != nil {
				t.Fatal(err)
			}
			return len(rows)
		}
		time.Sleep(10 * time.Second) // a load takes a part of it: step 5 is the first slow one
		if got, err := r.e.Decisions(t.Context(), id, 5); err != nil || len(got) == 0 {
			t.Errorf("asked at once: %v, %v", got, err)
		}
		time.Sleep(time.Hour + besideLate)
		if stored(7) == 0 {
			t.Error("not written although nothing else came")
		}
		time.Sleep(time.Hour - besideLate) // step 9 has begun some seconds ago
		r.e.Stop()
		if stored(9) == 0 {
			t.Error("not written when the engine stopped")
		}
		r.start()
		if v := r.wait(id); v.Status != run.Completed {
			t.Errorf("%s: %s", v.Status, v.Error)
		}
		if stored(12) == 0 {
			t.Error("not written with the end of the run")
		}
	})
}
