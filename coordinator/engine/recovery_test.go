package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// mixedScript uses every way in which results reach a script: a batch, concurrent branches, steps in sequence, reads, notes.
const mixedScript = `
  log("begin");
  const [b, chain] = await all({
    batch: batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer, retry: { attempts: 12 } }),
    chain: (async () => {
      const seen: string[] = [];
      for (let i = 0; i < 6; i++) {
        const v = await generate({ model: "small:8b", prompt: "step", item: "link " + i + " " + Math.random() + " " + uuid(), schema: Answer, retry: { attempts: 12 } });
        log("link " + i + " at " + Date.now());
        seen.push(v.of);
      }
      return seen;
    })(),
  }).then((r: any) => [r.batch, r.chain]);
  output("values", b.values);
  return { chain, coverage: b.coverage };`

// TestCrashesAtRandomCommits lets the process die at random commits, before or after the commit reached the disk, many times
// in one run, and takes a node away now and then. The run must end as an undisturbed one, and no finished item may be called again.
func TestCrashesAtRandomCommits(t *testing.T) {
	p := program(t, mixedScript)
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				f := newFarm(2)
				f.answer = faulty
				r := newRig(t, f, Options{})
				id := r.submit(p, items(40))
				crashes := 0
				for done := false; !done && crashes < 15; {
					r.store.before = rng.IntN(2) == 0
					r.store.left.Store(1 + rng.Int64N(25))
					views, err := r.e.Watch(t.Context(), id)
					if err != nil && apierr.CodeOf(err) != apierr.Unavailable {
						t.Fatal(err)
					}
					if err == nil {
						for v := range views {
							done = v.Status.Ended()
						}
					}
					if !done {
						<-r.e.Done()
						if r.e.Err() == nil {
							t.Fatal("the engine stopped without a reason")
						}
						crashes++
						time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Second))))
						r.store.left.Store(0)
						if f.back("n2"); rng.IntN(3) == 0 {
							f.lose("n2")
						}
						r.start()
					}
				}
				r.store.left.Store(0)
				v := r.wait(id)
				if v.Status != run.Completed || v.Items.Succeeded != 46 {
					t.Fatalf("after %d crashes: %+v", crashes, v)
				}
				if crashes < 5 {
					t.Errorf("only %d crashes: the test tests little", crashes)
				}
				r.once(id)
				r.undisturbed(id, 40)
				if len(v.Logs) != 7 {
					t.Errorf("%d log lines, want 7: notes are recorded once", len(v.Logs))
				}
			})
		})
	}
}

// undisturbed checks the outputs against what the items alone determine.
func (r *rig) undisturbed(id string, n int) {
	r.t.Helper()
	var values []map[string]string
	if err := json.Unmarshal([]byte(r.output(id, "values")), &values); err != nil || len(values) != n {
		r.t.Fatalf("%d values, %v", len(values), err)
	}
	for i, v := range values {
		if want := fmt.Sprintf(`"item %03d"`, i); v["of"] != want {
			r.t.Errorf("value %d is of %s, want %s", i, v["of"], want)
		}
	}
	var result struct {
		Chain    []string
		Coverage float64
	}
	if err := json.Unmarshal([]byte(r.output(id, "result")), &result); err != nil || len(result.Chain) != 6 || result.Coverage != 1 {
		r.t.Errorf("the result is %+v, %v", result, err)
	}
	for i, link := range result.Chain {
		if !strings.HasPrefix(link, fmt.Sprintf(`"link %d `, i)) {
			r.t.Errorf("link %d is %s", i, link)
		}
	}
}

// TestStopAndStartAgain is the polite way: what runs on the workers goes on, and its results are fetched.
func TestStopAndStartAgain(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.takes = func(Attempt) time.Duration { return time.Minute }
		r := newRig(t, f, Options{})
		id := r.submit(p, items(16))
		time.Sleep(30 * time.Second)
		r.e.Stop()
		r.e.Stop()
		if r.e.Err() != nil {
			t.Error(r.e.Err())
		}
		time.Sleep(10 * time.Minute) // the calls end while nobody is there to listen
		r.start()
		v := r.wait(id)
		if v.Status != run.Completed || v.Calls != 16 || v.Items.Retried != 0 {
			t.Fatalf("%+v", v)
		}
		seen := map[string]int{}
		for _, a := range f.sent() {
			seen[a.Key]++
		}
		again := 0
		for _, n := range seen {
			again += n - 1
		}
		if len(seen) != 16 || again != 8 {
			t.Errorf("%d attempts, %d asked for again; want 16 and the 8 that were in flight", len(seen), again)
		}
		r.once(id)
	})
}

func TestANodeThatIsNotThereAfterARestart(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.takes = func(Attempt) time.Duration { return 30 * time.Second }
		r := newRig(t, f, Options{})
		id := r.submit(p, items(16))
		time.Sleep(10 * time.Second)
		r.e.Stop()
		f.lose("n1")
		restart := time.Now()
		r.start()
		v := r.wait(id)
		if v.Status != run.Completed || v.Items.Retried != 4 {
			t.Fatalf("%+v", v)
		}
		for _, ev := range r.events(id) {
			if p, ok := ev.Data.(*run.AttemptFailed); ok && ev.Time.Sub(restart) < 20*time.Second {
				t.Errorf("%v was given up after %s, within the grace", p.AttemptID, ev.Time.Sub(restart))
			}
		}
		r.once(id)
	})
}

func TestAFullDiskStopsTheEngineAndLosesNothing(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		r := newRig(t, f, Options{})
		id := r.submit(p, items(12))
		time.Sleep(5 * time.Second)
		r.store.before = true
		r.store.left.Store(1)
		asked := make(chan error, 1)
		go func() { // whoever asks at that moment hears why
			for err := error(nil); ; {
				if _, err = r.e.Snapshot(t.Context()); err != nil {
					asked <- err
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		<-r.e.Done()
		if err := <-asked; !errors.Is(err, errDisk) {
			t.Errorf("who asked was told %v", err)
		}
		sent := len(f.sent())
		if err := r.e.Err(); apierr.CodeOf(err) != apierr.Unavailable || !errors.Is(err, errDisk) || len(apierr.As(err).Next) == 0 {
			t.Errorf("the engine stopped with %v", err)
		}
		if _, _, err := r.e.Submit(t.Context(), Submission{Workflow: "flow", Program: p}); apierr.CodeOf(err) != apierr.Unavailable {
			t.Errorf("a submission to a stopped engine: %v", err)
		} else if err := r.e.Err(); !errors.Is(err, errDisk) {
			t.Errorf("later the reason is %v", err)
		}
		time.Sleep(time.Hour)
		if more := len(f.sent()) - sent; more > 0 {
			t.Errorf("%d attempts were sent without a ledger", more)
		}
		r.store.left.Store(0)
		r.start()
		if v := r.wait(id); v.Status != run.Completed {
			t.Errorf("%+v", v)
		}
		r.once(id)
	})
}

// TestDivergence changes what the script asks for between two starts, which pinning forbids, by a host that does not obey.
func TestDivergence(t *testing.T) {
	before := program(t, `await generate({ model: "small:8b", prompt: "one", schema: Answer }); await generate({ model: "small:8b", prompt: "two" });`)
	tests := []struct{ name, after, expected, got string }{
		{"another request", `await generate({ model: "small:8b", prompt: "uno", schema: Answer });`, `"prompt":"one"`, `"prompt":"uno"`},
		{"an early end", `return 1;`, `"prompt":"one"`, "output"},
		{"fewer requests", `await generate({ model: "small:8b", prompt: "one", schema: Answer }); await new Promise(() => {});`, `"prompt":"two"`, "the end of the script"},
	}
	for _, tt := range tests {
		after := program(t, tt.after)
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFarm(1)
				f.takes = func(Attempt) time.Duration { return 10 * time.Second }
				r := newRig(t, f, Options{})
				id := r.submit(before, nil)
				time.Sleep(20 * time.Second) // in the second step
				r.e.Stop()
				r.opts.Host = swapped{script.NewHost(script.Limits{}), after}
				r.start()
				v := r.wait(id)
				if v.Status != run.Diverged || !strings.Contains(v.Error, tt.expected) || !strings.Contains(v.Error, tt.got) {
					t.Errorf("%s: %s", v.Status, v.Error)
				}
				if left := f.running(); len(left) > 0 {
					synctest.Wait()
					if left = f.running(); len(left) > 0 {
						t.Errorf("still running: %q", left)
					}
				}
			})
		})
	}
}

// swapped starts another program than the one it is given.
type swapped struct {
	script.Host
	program script.Program
}

func (h swapped) Start(ctx context.Context, s script.Start) (script.Session, script.Yield, error) {
	s.Program = h.program
	return h.Host.Start(ctx, s)
}

// TestAScriptHostThatDies is rebuilt by replay; one that dies again and again ends the run.
func TestAScriptHostThatDies(t *testing.T) {
	p := program(t, mixedScript)
	for _, deaths := range []int{2, 9} {
		t.Run(fmt.Sprint(deaths, " deaths"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &mortal{Host: script.NewHost(script.Limits{}), deaths: deaths}
				r := newRig(t, newFarm(2), Options{Host: h})
				id := r.submit(p, items(5))
				v := r.wait(id)
				if deaths > maxCrashes {
					if v.Status != run.Failed || !strings.Contains(v.Error, "killed") {
						t.Errorf("%s: %s", v.Status, v.Error)
					}
					return
				}
				if v.Status != run.Completed {
					t.Fatalf("%+v", v)
				}
				r.undisturbed(id, 5)
				r.once(id)
			})
		})
	}
}

type mortal struct {
	script.Host
	deaths int
}

func (h *mortal) Start(ctx context.Context, s script.Start) (script.Session, script.Yield, error) {
	session, y, err := h.Host.Start(ctx, s)
	return &mortalSession{Session: session, h: h}, y, err
}

type mortalSession struct {
	script.Session
	h     *mortal
	given int
}

func (s *mortalSession) DeliverAll(ctx context.Context, ds []script.Delivery) ([]script.Yield, error) {
	if s.given += len(ds); s.given >= 3 && s.h.deaths > 0 {
		s.h.deaths--
		return nil, &script.Failure{Kind: script.Crashed, Message: "killed"}
	}
	return s.Session.DeliverAll(ctx, ds)
}

// TestLateResultsAreKeptAsEvidence: what a lost node hands in after all changes nothing.
func TestLateResultsAreKeptAsEvidence(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.takes = func(Attempt) time.Duration { return 20 * time.Second }
		r := newRig(t, f, Options{})
		id := r.submit(p, items(4))
		time.Sleep(10 * time.Second)
		var lost []Attempt
		for _, a := range f.sent() {
			if a.Node == "n1" {
				lost = append(lost, a)
			}
		}
		f.lose("n1")
		synctest.Wait()
		for _, a := range lost {
			res := value(a)
			res.Key = a.Key
			r.e.Finished(res)
			r.e.Finished(res) // twice is once
		}
		if v := r.wait(id); v.Status != run.Completed || len(lost) == 0 {
			t.Fatalf("%+v, %d lost", v, len(lost))
		}
		late := 0
		for _, ev := range r.events(id) {
			if p, ok := ev.Data.(*run.AttemptLate); ok && p.Raw != "" {
				late++
			}
		}
		if late != len(lost) {
			t.Errorf("%d late results are kept, want %d", late, len(lost))
		}
		r.once(id)
	})
}

func TestMovesFollowTheReports(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	load := scheduler.Decision{Action: scheduler.Load, Node: "n1", Digest: "d", Model: "m", Need: 5}
	loaded := scheduler.Node{ID: "n1", Loaded: []scheduler.Loaded{{Digest: "d", Name: "m"}}}
	m := newMoves()
	if !m.begin(load, now) || m.begin(load, now) {
		t.Fatal("one load is begun once")
	}
	if n := m.fill(scheduler.Node{ID: "n1"}, nil, now); n.Loading == nil || n.Loading.Need != 5 {
		t.Errorf("a load in flight is not shown: %+v", n.Loading)
	}
	m.ended("n1", Move{Decision: load, Spilled: true}, now)
	m.spilled("n1", "d", 4096, false, "it did not fit", now)
	if n := m.fill(scheduler.Node{ID: "n1"}, nil, now); n.Loading == nil {
		t.Error("the claim goes before the report shows the model")
	}
	n := m.fill(loaded, []holding{{node: "n1", digest: "d"}, {node: "n1", digest: "other"}}, now)
	if n.Loading != nil || n.Loaded[0].Busy != 1 || !n.Unfit["d"].Until.After(now) {
		t.Errorf("after the report: %+v", n)
	}
	if later := m.fill(loaded, nil, now.Add(time.Minute)); !later.Loaded[0].Since.Equal(now) || !n.Loaded[0].Since.Equal(now) {
		t.Errorf("loaded at %s, shown as %s and later as %s", now, n.Loaded[0].Since, later.Loaded[0].Since)
	}
	found := scheduler.Node{ID: "n1", Loaded: []scheduler.Loaded{{Digest: "d", Name: "m"}, {Digest: "foreign"}}}
	if n := m.fill(found, nil, now.Add(time.Hour)); !n.Loaded[1].Since.Equal(now.Add(time.Hour)) || !n.Loaded[1].Foreign || n.Loaded[0].Foreign {
		t.Errorf("a model that somebody loaded is there since %s, not since it was first seen", n.Loaded[1].Since)
	}
	unload := scheduler.Decision{Action: scheduler.Unload, Node: "n1", Digest: "d", Task: "waits"}
	m.begin(unload, now)
	m.ended("n1", Move{Decision: unload}, now)
	if n := m.fill(loaded, nil, now); n.RoomFor != "waits" {
		t.Errorf("the room that an unload makes is for %q", n.RoomFor)
	}
	if n := m.fill(loaded, nil, now); !n.Loaded[0].Leaving {
		t.Error("an unloaded model that is still reported takes work")
	}
	if n := m.fill(loaded, nil, now.Add(reportGrace)); n.Loaded[0].Leaving {
		t.Error("a report that never shows the unload is not believed in the end")
	}
}
