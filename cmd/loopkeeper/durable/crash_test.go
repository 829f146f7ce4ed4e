package durable

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger/crashdisk"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/tools"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// everyWay uses all that a run can wait for. Of the letter nobody can tell after a crash whether it went out, of the entry the log can.
const everyWay = `
  log("begin");
  const made = await batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer, evaluate: { criteria: ["it is good"], model: "judge:8b" } });
  const entry = await tool("effect.log", { text: "entry" });
  const child = await spawn({ workflow: "map", input: { model: "small:8b", prompt: "{{item}}", items: ["x", "y"] } });
  const said = await approve({ title: "send it?", will: "it is sent", show: [made.values[0].of] });
  await sleep(3600);
  const done = await pipeline({ name: "work", inputs: { n: made.succeeded }, phases: [
    { name: "make", needs: ["n"], run: async ({ n }: any) => (await generate({ model: "small:8b", prompt: "make " + n, schema: Answer })).of },
    { name: "look", needs: ["make"], run: async ({ make }: any) => (await generate({ model: "small:8b", prompt: "look at " + make, schema: Answer })).of,
      gate: (v: any, _: any, at: any) => at.round === 1 ? gate.sent_back("make", "once more") : gate.passed() },
  ] });
  const letter = await tool("effect.log", { text: "letter", blind: true });
  output("values", made.values);
  return { entry, child: child.state, outcome: said.outcome, done, letter, coverage: made.coverage };`

// errPower says that the power failed.
var errPower = errors.New("the power failed")

// world is what a run leaves behind, and what a crash must not touch: the effects on the outside and what people have seen.
type world struct {
	h       *house
	program script.Program
	log     tools.EffectLog

	mu    sync.Mutex
	seen  map[string]string // events that a watcher was shown, by run and position
	asked bool              // somebody was asked about a write of which nobody can tell
	lost  []string          // what must not be
}

func (w *world) fault(format string, args ...any) {
	w.lost = append(w.lost, fmt.Sprintf(format, args...))
}

// life lets a coordinator work on a disk until the run has ended, or the power fails.
func (w *world) life(dir string, d *crashdisk.Disk) (*outcome, error) {
	name := w.h.t.Name()
	vfs.Register(name, d)
	defer vfs.Unregister(name)
	store, err := ledger.OpenWith(w.h.t.Context(), ledger.Options{Dir: dir}, "sqlite3", "vfs="+name+"&_pragma=locking_mode(EXCLUSIVE)&_pragma=wal_autocheckpoint(6)&")
	if err != nil {
		return nil, errors.Join(errPower, err)
	}
	defer store.Close() //nolint:errcheck // the power may have failed
	if err := w.h.start(store); err != nil {
		return nil, errors.Join(errPower, err)
	}
	defer w.h.stop()
	ctx, cancel := context.WithCancel(w.h.t.Context())
	defer cancel()
	id, err := w.h.submit(w.program, "the same work", map[string]any{"items": []string{"a", "b", "c", "d", "e"}})
	if err != nil {
		return nil, errors.Join(errPower, err)
	}
	var people sync.WaitGroup
	people.Go(func() { w.watch(ctx, id) })
	people.Go(func() { w.person(ctx) })
	_, err = w.h.end(id)
	cancel()
	people.Wait()
	if err != nil {
		return nil, errors.Join(errPower, err)
	}
	return w.outcome(id)
}

// watch sees every event of a run as soon as it is durable. One that was shown must be the same for ever.
func (w *world) watch(ctx context.Context, id string) {
	stream, err := w.h.client.GetTrace(ctx, &coordinatorv1.GetTraceRequest{RunId: id, Follow: true})
	for err == nil {
		var e *coordinatorv1.GetTraceResponse
		if e, err = stream.Recv(); err == nil {
			w.see(id, e)
		}
	}
}

func (w *world) see(id string, e *coordinatorv1.GetTraceResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, is := fmt.Sprint(id, "/", e.GetSeq()), fmt.Sprint(e.GetTime().AsTime(), e.GetKind(), string(e.GetPayloadJson()))
	if was, known := w.seen[at]; known && was != is {
		w.fault("event %s was shown as %s and is now %s", at, was, is)
	}
	w.seen[at] = is
}

// person says yes, and of a write of which nobody can tell that it did not happen: they cannot tell either.
func (w *world) person(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		waits, err := w.h.steer.ListWaits(ctx, &coordinatorv1.ListWaitsRequest{})
		if err != nil {
			continue
		}
		for _, x := range waits.GetWaits() {
			say := "approved"
			if x.GetKind() == "unknown" {
				say = "not_happened"
				w.mu.Lock()
				w.asked = true
				w.mu.Unlock()
			}
			// An answer that a crash overtakes is given again when the question is still there.
			_, _ = w.h.steer.AnswerWait(ctx, &coordinatorv1.AnswerWaitRequest{RunId: x.GetRunId(), Step: x.GetStep(), Item: x.GetItem(), Outcome: say, By: "ada"})
		}
	}
}

// outcome is what must not depend on crashes.
type outcome struct {
	State, Items, Outputs, Steps, Children string
	Asked                                  int // calls of models; one that is joined again is one
}

func (w *world) outcome(id string) (*outcome, error) {
	ctx := w.h.t.Context()
	r, err := w.h.client.GetResult(ctx, &coordinatorv1.GetResultRequest{RunId: id})
	if err != nil {
		return nil, errors.Join(errPower, err)
	}
	run := r.GetRun()
	o := &outcome{State: run.GetState() + run.GetError(), Items: counts(run.GetItems()), Asked: w.h.asked()}
	for _, out := range r.GetOutputs() {
		o.Outputs += fmt.Sprintf("%s=%s%s\n", out.GetName(), out.GetValueJson(), out.GetRef().GetSha256())
	}
	for _, s := range run.GetSteps() {
		o.Steps += fmt.Sprintln(s.GetKind(), s.GetLabel(), s.GetState(), counts(s.GetItems()))
	}
	for _, child := range run.GetChildren() {
		r, err := w.h.client.GetResult(ctx, &coordinatorv1.GetResultRequest{RunId: child})
		if err != nil {
			return nil, errors.Join(errPower, err)
		}
		o.Children += fmt.Sprintln(r.GetRun().GetState())
		for _, out := range r.GetOutputs() {
			o.Children += fmt.Sprintf("%s=%s\n", out.GetName(), out.GetValueJson())
		}
	}
	return o, w.check(id)
}

// counts leaves out the tries: a write that a crash hid is tried again when the world says that it did not happen.
func counts(c *coordinatorv1.Counts) string {
	return fmt.Sprintf("%d of %d, %d failed", c.GetSucceeded(), c.GetTotal(), c.GetFailed())
}

// check finds an event that was shown and is gone.
func (w *world) check(id string) error {
	stream, err := w.h.client.GetTrace(w.h.t.Context(), &coordinatorv1.GetTraceRequest{RunId: id})
	if err != nil {
		return errors.Join(errPower, err)
	}
	there := map[string]bool{}
	for {
		e, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return errors.Join(errPower, err)
		}
		there[fmt.Sprint(id, "/", e.GetSeq())] = true
		w.see(id, e)
	}
	for at := range w.seen {
		if !there[at] {
			w.fault("event %s was shown and is not there", at)
		}
	}
	return nil
}

// effects finds an effect that was repeated although nobody was asked.
func (w *world) effects() {
	byKey, err := w.log.Effects()
	if err != nil {
		w.h.t.Fatal(err)
	}
	n := map[string]int{}
	for _, texts := range byKey {
		for _, text := range texts {
			n[text]++
		}
	}
	if n["entry"] != 1 || n["letter"] < 1 || n["letter"] > 1 && !w.asked {
		w.fault("effects are %v, and somebody was asked: %t", n, w.asked)
	}
}

func newWorld(t *testing.T, p script.Program) *world {
	w := &world{h: newHouse(t, 2, 2), program: p, seen: map[string]string{}, log: tools.EffectLog{Path: filepath.Join(t.TempDir(), "effects")}}
	w.h.effects = &w.log
	return w
}

var crashStep = flag.Int("crash.step", 149, "crash at every so-manieth disk operation")

// undisturbed is how the run ends without a crash, and how many operations of the disk that takes.
func undisturbed(t *testing.T, p script.Program) (want *outcome, ops int) {
	t.Helper()
	workflows.List() // they are bundled outside of a bubble
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t, p), crashdisk.New(0)
		var err error
		if want, err = w.life(t.TempDir(), d); err != nil {
			t.Fatal(err)
		}
		if w.effects(); len(w.lost) > 0 {
			t.Fatal(w.lost)
		}
		ops = d.Ops()
	})
	if !strings.HasPrefix(want.State, "completed") || !strings.Contains(want.Outputs, `"outcome":"approved"`) || !strings.Contains(want.Children, "completed") {
		t.Fatalf("undisturbed: %+v", want)
	}
	return want, ops
}

// crash cuts the power at an operation, at every second one again while it recovers, and lets the run end. It returns what is wrong then.
func crash(t *testing.T, p script.Program, at int, lies bool, want *outcome) (w *world) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, p)
		d, dir := crashdisk.New(uint64(at)), t.TempDir()
		d.CrashAt, d.Lies = at, lies
		for lives := 1; ; lives++ {
			got, err := w.life(dir, d)
			if err == nil {
				if *got != *want {
					w.fault("it ended as\n%+v\nand undisturbed as\n%+v", got, want)
				}
				w.effects()
				return
			}
			if d.CrashAt == 0 || d.Ops() < d.CrashAt {
				w.fault("life %d, which lasted %d operations of %d: %v", lives, d.Ops(), d.CrashAt, err)
				return
			}
			d = d.Reboot()
			if d.CrashAt = 0; at%2 == 0 && lives == 1 {
				d.CrashAt = 1 + d.Rand.IntN(60)
			}
		}
	})
	return w
}

// A power cut at any disk operation, and often another one while it recovers: the run ends as the undisturbed one, nothing that anybody was
// shown is gone, and no effect was repeated without a person being asked.
func TestCrashAtEveryDiskOperation(t *testing.T) {
	p := program(t, everyWay)
	want, ops := undisturbed(t, p)
	points, asked := 0, 0
	for at := 1 + ops%*crashStep; at <= ops; at += *crashStep {
		points++
		w := crash(t, p, at, false, want)
		for _, fault := range w.lost {
			t.Errorf("crash at operation %d of %d: %s", at, ops, fault)
		}
		if w.asked {
			asked++
		}
	}
	t.Logf("%d crash points of %d operations; after %d of them a person was asked about a write", points, ops, asked)
}

// The same test must find what a disk loses that only claims to sync: otherwise it could not fail.
func TestTheCrashTestFindsLosses(t *testing.T) {
	p := program(t, everyWay)
	want, ops := undisturbed(t, p)
	found, points := 0, 6
	for i := range points {
		if w := crash(t, p, ops*(i+1)/(points+1), true, want); len(w.lost) > 0 {
			found++
		}
	}
	if found < points/2 {
		t.Errorf("a disk that never syncs lost something in only %d of %d crashes", found, points)
	}
}
