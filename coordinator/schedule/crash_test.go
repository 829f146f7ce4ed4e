package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever happens to the process, its store and its clock: every hour is fired, none twice, none in vain.
func TestNoHourIsLostOrFiredTwice(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { live(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

// live lets a schedule live through random trouble.
func live(t *testing.T, random *rand.Rand) {
	w := newWorld(t)
	w.length = time.Duration(1+random.IntN(200)) * time.Minute
	overlap := []Overlap{Allow, Queue, Skip}[random.IntN(3)]
	w.start()
	created := w.add(Spec{Cron: "@hourly", Overlap: overlap, CatchUp: CatchUp{All, 100}}).State.Created
	latest := w.now()
	for range 25 {
		switch random.IntN(6) {
		case 0: // power is lost at one of the next operations, and comes back later
			w.set(func() { w.until = 1 + random.IntN(5) })
			w.sleep(time.Duration(random.IntN(300)) * time.Minute)
			w.stop()
			w.sleep(time.Duration(random.IntN(2000)) * time.Minute)
			w.set(func() { w.until = 0 })
			w.start()
		case 1: // a restart in good order
			w.stop()
			w.start()
		case 2: // somebody sets the clock, by at most the 24 h that count as a mistake of the clock
			w.set(func() { w.offset += time.Duration(random.IntN(40)-20) * time.Hour })
		case 3: // submissions or the store fail for a while
			w.set(func() { w.fail = errors.New("not now") })
			w.sleep(time.Duration(random.IntN(120)) * time.Minute)
			w.set(func() { w.fail, w.broken = nil, errors.New("disk full") })
			w.sleep(time.Duration(random.IntN(120)) * time.Minute)
			w.set(func() { w.broken = nil })
		default:
			w.sleep(time.Duration(random.IntN(600)) * time.Minute)
		}
		if now := w.now(); now.After(latest) {
			latest = now
		}
	}
	for w.now().Before(latest) {
		w.sleep(time.Hour)
	}
	w.sleep(6 * time.Minute) // beyond the longest pause after a failure
	state := w.runner.List()[0].State
	w.stop()

	hours := int(w.now().Truncate(time.Hour).Sub(created) / time.Hour)
	if len(w.runs) > hours {
		t.Errorf("%d runs in %d hours", len(w.runs), hours)
	}
	if pending := len(state.Outbox) + len(state.Waiting); state.Fired != len(w.runs)+pending {
		t.Errorf("%d firings are counted, %d runs were started and %d wait", state.Fired, len(w.runs), pending)
	}
	if overlap == Allow && len(w.runs) != hours {
		t.Errorf("%d runs in %d hours", len(w.runs), hours)
	}
}
