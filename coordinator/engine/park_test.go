package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

// census counts the script hosts that live.
type census struct {
	script.Host
	mu                  sync.Mutex
	live, most, started int
}

func newCensus() *census { return &census{Host: script.NewHost(script.Limits{})} }

func (c *census) Start(ctx context.Context, s script.Start) (script.Session, script.Yield, error) {
	session, y, err := c.Host.Start(ctx, s)
	if err != nil {
		return nil, y, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started++
	c.live++
	c.most = max(c.most, c.live)
	return &counted{Session: session, leave: sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.live--
	})}, y, nil
}

func (c *census) now() (live, most, started int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live, c.most, c.started
}

type counted struct {
	script.Session
	leave func()
}

func (s *counted) Close() error {
	defer s.leave()
	return s.Session.Close()
}

// Forty runs that wait for a person share two hosts, and then need none; an answer after a day finds its run again.
func TestAScriptThatWaitsGivesItsHostBack(t *testing.T) {
	p := flow(t, `const n = Math.random(); log("begin"); const said = await approve({ title: "go on?" });
  const made = await generate({ model: "small:8b", prompt: "p" + n, schema: Answer }); log("made"); return [said.outcome, n === n, made.of.length];`)
	synctest.Test(t, func(t *testing.T) {
		c := newCensus()
		r := newRig(t, newFarm(1), Options{Host: c, MaxScripts: 2})
		var ids []string
		for range 40 {
			ids = append(ids, r.submit(p, nil))
		}
		time.Sleep(time.Second)
		if n := len(r.waits("")); n != 40 {
			t.Errorf("%d of 40 runs wait for a person after a second", n)
		}
		time.Sleep(time.Minute)
		if live, most, _ := c.now(); live != 0 || most > 2 {
			t.Errorf("%d hosts live while all wait, %d lived at once", live, most)
		}
		_, _, before := c.now()
		commits := r.store.commits.Load()
		time.Sleep(24 * time.Hour)
		if _, _, now := c.now(); now != before || r.store.commits.Load() != commits {
			t.Errorf("%d hosts were started and %d commits made in a day of waiting", now-before, r.store.commits.Load()-commits)
		}
		for i, id := range ids {
			if _, err := r.e.Settle(t.Context(), id, 1, 0, Answer{Outcome: run.Approved}); err != nil {
				t.Fatal(err)
			}
			if i == 20 {
				r.e.Stop()
				r.start()
			}
		}
		for _, id := range ids {
			if v := r.wait(id); v.Status != run.Completed || len(v.Logs) != 2 {
				t.Errorf("%s %s %q", v.Status, v.Error, v.Logs)
			}
		}
		if _, most, _ := c.now(); most > 2 {
			t.Errorf("%d hosts lived at once", most)
		}
	})
}

// More runs at work than hosts: each gets its turn, and no run is rebuilt for every step of its own.
func TestHostsAreSharedFairly(t *testing.T) {
	p := flow(t, `for (let i = 0; i < 30; i++) await generate({ model: "small:8b", prompt: "p" + i, schema: Answer });`)
	synctest.Test(t, func(t *testing.T) {
		c := newCensus()
		f := newFarm(4)
		f.takes = func(Attempt) time.Duration { return time.Second }
		r := newRig(t, f, Options{Host: c, MaxScripts: 2})
		var ids []string
		for range 8 {
			ids = append(ids, r.submit(p, nil))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(40 * time.Second)
		var least, most int64 = 1000, 0
		for _, id := range ids {
			v := r.view(id)
			least, most = min(least, v.Calls), max(most, v.Calls)
		}
		if least < most/2 || least < 5 {
			t.Errorf("after 40 s one run made %d calls and another one %d", least, most)
		}
		for _, id := range ids {
			if v := r.wait(id); v.Status != run.Completed || v.Calls != 30 {
				t.Errorf("%s after %d calls: %s", v.Status, v.Calls, v.Error)
			}
		}
		if _, most, started := c.now(); most > 2 || started > 8*30 {
			t.Errorf("%d hosts lived at once, %d were started for 240 steps", most, started)
		}
	})
}

// Runs that share one host, and die with it anywhere, come to what each would have come to alone.
func TestSharedHostsOverCrashes(t *testing.T) {
	p := flow(t, `let sum = 0; const path: string[] = [];
  for (let i = 0; i < 6; i++) {
    const v = await generate({ model: "small:8b", prompt: "p" + i + input.n, schema: Answer, check: (v: any) => { sum++; return sum % 4 !== 0 || "the fourth"; } });
    if (i % 2) await sleep(30); else path.push(uuid() + Math.random());
    log(i + " " + Date.now());
  }
  return { sum, distinct: new Set(path).size };`)
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 9))
				c := newCensus()
				r := newRig(t, newFarm(2), Options{Host: c, MaxScripts: 1})
				var ids []string
				for n := range 4 {
					ids = append(ids, r.submit(p, map[string]any{"n": n}))
				}
				crashes := 0
				for range 25 {
					r.store.before = rng.IntN(2) == 0
					r.store.left.Store(1 + rng.Int64N(15))
					select {
					case <-r.e.Done():
						crashes++
						r.store.left.Store(0)
						r.start()
					case <-time.After(time.Minute):
					}
				}
				r.store.left.Store(0)
				for _, id := range ids {
					v := r.wait(id)
					if got := r.output(id, "result"); v.Status != run.Completed || got != `{"distinct":3,"sum":7}` || len(v.Logs) != 6 {
						t.Errorf("after %d crashes %s: %s, %d lines, %s", crashes, v.Status, got, len(v.Logs), v.Error)
					}
					r.once(id)
					if again, err := r.e.Replay(t.Context(), id); err != nil || again.Divergence != nil {
						t.Errorf("its replay: %+v, %v", again.Divergence, err)
					}
				}
				if _, most, _ := c.now(); crashes < 5 || most > 2 { // a replay beside the one
					t.Errorf("%d crashes, %d hosts lived at once", crashes, most)
				}
			})
		})
	}
}

// A script that works now and then keeps its host between.
func TestAPollingScriptKeepsItsHost(t *testing.T) {
	p := flow(t, `for (let i = 0; i < 200; i++) await sleep(5);`)
	synctest.Test(t, func(t *testing.T) {
		c := newCensus()
		r := newRig(t, newFarm(1), Options{Host: c, MaxScripts: 2})
		v := r.wait(r.submit(p, nil))
		if _, _, started := c.now(); v.Status != run.Completed || started != 1 {
			t.Errorf("%s with %d hosts", v.Status, started)
		}
	})
}

// BenchmarkParkedRun says what a run costs that waits for a person: bytes of live heap, its input of a kilobyte included.
func BenchmarkParkedRun(b *testing.B) {
	p := flow(b, `await generate({ model: "small:8b", prompt: "p", schema: Answer }); await approve({ title: "go on?" });`)
	store, err := ledger.Open(b.Context(), ledger.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	const runs = 500
	for b.Loop() {
		f := newFarm(4)
		f.takes = func(Attempt) time.Duration { return 0 }
		e := New(Options{Store: store, Host: script.NewHost(script.Limits{}), MaxScripts: 2})
		f.sink = e
		if err := e.Start(b.Context(), f, f); err != nil {
			b.Fatal(err)
		}
		before := heap()
		for i := range runs {
			if _, _, err := e.Submit(b.Context(), Submission{Workflow: "flow", Program: p, Input: []byte(fmt.Sprintf(`{"n":%d,"text":"%01000d"}`, i, i))}); err != nil {
				b.Fatal(err)
			}
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			w, err := e.Waits(b.Context(), "")
			if err != nil || time.Now().After(deadline) {
				b.Fatal(len(w), err)
			}
			if len(w) == runs {
				break
			}
		}
		f.wg.Wait()
		f.mu.Lock()
		f.calls, f.sends = map[string]*call{}, nil
		f.mu.Unlock()
		b.ReportMetric(float64(heap()-before)/runs, "B/run")
		rows, err := e.Runs(b.Context(), Filter{Limit: runs})
		if err != nil {
			b.Fatal(err)
		}
		for _, v := range rows {
			if _, err := e.Cancel(b.Context(), v.ID, ""); err != nil {
				b.Fatal(err)
			}
		}
		e.Stop()
	}
}

// heap is the live heap in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
