package probe

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// watching is what a test sees of a Watch: when it looked, from the start on, and what changed.
type watching struct {
	at    []time.Duration
	kinds [][]hwprobe.ChangeKind
}

// watch runs Watch for so long; see is called with each update.
func watch(t *testing.T, p *Prober, forTime time.Duration, see func(look int)) watching {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), forTime)
	defer cancel()
	var w watching
	start := time.Now()
	for u := range p.Watch(ctx) {
		var kinds []hwprobe.ChangeKind
		for _, c := range u.Changes {
			kinds = append(kinds, c.Kind)
		}
		w.at, w.kinds = append(w.at, time.Since(start)), append(w.kinds, kinds)
		if see != nil {
			see(len(w.at))
		}
	}
	return w
}

func (w watching) gaps() []time.Duration {
	var gaps []time.Duration
	for i := range len(w.at) - 1 {
		gaps = append(gaps, w.at[i+1]-w.at[i])
	}
	return gaps
}

func idle() hwprobe.Findings {
	f := card("gpu:a", 16<<30, 12<<30)
	f.Devices[0].Utilisation = hwprobe.Known(0.0)
	return f
}

func TestWatchSlowsDownWhileNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, vendor := scripted(Options{})
		vendor.finds(idle())
		gaps := watch(t, p, time.Minute, nil).gaps()
		if want := []time.Duration{2, 4, 8, 10, 10, 10, 10}; len(gaps) < 7 || !slices.Equal(gaps[:7], seconds64(want)) {
			t.Errorf("looked after %v, want %v s", gaps, want)
		}
	})
}

func seconds64(list []time.Duration) []time.Duration {
	for i := range list {
		list[i] *= time.Second
	}
	return list
}

func TestWatchIsQuickWhileNumbersMoveOrTheCallerIsBusy(t *testing.T) {
	for name, busy := range map[string]func(p *Prober, vendor *script, look int){
		"free moves": func(_ *Prober, vendor *script, look int) { vendor.finds(card("gpu:a", 16<<30, uint64(look%12)<<30)) },
		"it computes": func(_ *Prober, vendor *script, _ int) {
			f := card("gpu:a", 16<<30, 12<<30)
			f.Devices[0].Utilisation = hwprobe.Known(97.0)
			vendor.finds(f)
		},
		"the caller is busy": func(p *Prober, _ *script, _ int) { p.Busy(true) },
	} {
		synctest.Test(t, func(t *testing.T) {
			p, vendor := scripted(Options{})
			vendor.finds(idle())
			gaps := watch(t, p, 21*time.Second, func(look int) { busy(p, vendor, look) }).gaps()
			if len(gaps) < 10 || slices.Max(gaps) > 2*time.Second {
				t.Errorf("%s: looked after %v, want every 2 s", name, gaps)
			}
		})
	}
}

func TestWatchLooksAtOnceWhenPoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, vendor := scripted(Options{})
		vendor.finds(idle())
		go func() {
			time.Sleep(31 * time.Second) // in the middle of an interval of 10 s
			p.Poke()
			p.Poke() // two wishes are one
		}()
		w := watch(t, p, 40*time.Second, nil)
		if !slices.Contains(w.at, 31*time.Second) || slices.Max(w.at) > 40*time.Second || len(w.at) != 7 {
			t.Errorf("looked at %v", w.at)
		}
	})
}

func TestWatchTellsWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, vendor := scripted(Options{})
		vendor.finds(idle())
		w := watch(t, p, 25*time.Second, func(look int) {
			vendor.finds([]hwprobe.Findings{idle(), {}, idle()}[min(look, 2)])
		})
		want := [][]hwprobe.ChangeKind{{hwprobe.DeviceAdded, hwprobe.DeviceAdded}, {hwprobe.DeviceLost, hwprobe.WarningAppeared},
			{hwprobe.DeviceReturned, hwprobe.WarningGone}, nil}
		if len(w.kinds) < 4 || !slices.EqualFunc(w.kinds[:4], want, slices.Equal) {
			t.Errorf("got %v, want %v", w.kinds, want)
		}
	})
}

// A suspended machine cannot be made here: its clocks are. On Linux and macOS the monotonic one stands still meanwhile, on
// Windows it goes on, and what was to be two seconds is an hour.
func TestWatchLooksAtOnceAfterASuspension(t *testing.T) {
	for name, jump := range map[string]func(at instant) instant{
		"the monotonic clock stood still": func(at instant) instant { at.wall = at.wall.Add(time.Hour); return at },
		"both clocks went on":             func(at instant) instant { at.wall, at.mono = at.wall.Add(time.Hour), at.mono.Add(time.Hour); return at },
	} {
		synctest.Test(t, func(t *testing.T) {
			p, vendor := scripted(Options{})
			vendor.finds(idle())
			begin := time.Now()
			p.instant = func() instant {
				at := now()
				if time.Since(begin) >= 29*time.Second { // in the middle of the interval from 24 to 34 s
					at = jump(at)
				}
				return at
			}
			w := watch(t, p, 33*time.Second, nil)
			last := len(w.at) - 1
			i := slices.IndexFunc(w.kinds, func(kinds []hwprobe.ChangeKind) bool { return slices.Contains(kinds, hwprobe.Resumed) })
			if i < 0 || w.at[i] < 29*time.Second || w.at[i] > 31*time.Second || i+1 > last || w.at[i+1]-w.at[i] != 2*time.Second {
				t.Errorf("%s: looked at %v, saw %v; want a look soon after 29 s, then a short interval", name, w.at, w.kinds)
			}
		})
	}
}

func TestWatchEndsWhenTheCallerBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, vendor := scripted(Options{})
		vendor.finds(idle())
		for range p.Watch(t.Context()) {
			break
		}
	})
}

// The costlier a look, the rarer it is: at most 0.2 % of a core while nothing happens, 2 % while the machine works.
func TestPaceIsAShareOfACore(t *testing.T) {
	for _, c := range []struct{ tools, quick, slow time.Duration }{
		{0, 2 * time.Second, 10 * time.Second},
		{40 * time.Millisecond, 2250 * time.Millisecond, 22500 * time.Millisecond},
		{95 * time.Millisecond, 5 * time.Second, 50 * time.Second},
		{time.Second, 10 * time.Second, 2 * time.Minute}, // beyond what a share allows: a report must not get older
	} {
		var p pace
		quick := p.next(true, c.tools)
		var slow time.Duration
		for range 10 {
			slow = p.next(false, c.tools)
		}
		if quick != c.quick || slow != c.slow || p.next(true, c.tools) != c.quick {
			t.Errorf("tools of %v: every %v and %v, want %v and %v", c.tools, quick, slow, c.quick, c.slow)
		}
	}
}

// costly is a tool that takes processor time.
type costly struct{ cost time.Duration }

func (c costly) Run(context.Context, string, ...string) (source.Output, error) {
	return source.Output{CPU: c.cost}, nil
}

func TestToolsOfAProbeAreMetered(t *testing.T) {
	m := &meter{Runner: costly{3 * time.Millisecond}}
	for range 2 {
		if _, err := m.Run(t.Context(), "smi"); err != nil {
			t.Fatal(err)
		}
	}
	if m.total() != 2*(startCost+3*time.Millisecond) {
		t.Errorf("%v", m.total())
	}
}
