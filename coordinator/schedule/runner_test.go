package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errPowerLost = errors.New("power lost")

// world is what a Runner sees: a store that survives crashes, runs that are one per key, and a clock that can be set.
type world struct {
	t  *testing.T
	mu sync.Mutex

	stored map[string]json.RawMessage
	dead   bool  // power is lost: nothing is stored or submitted any more
	until  int   // operations until then; 0: never
	fail   error // of the next submissions
	hang   bool  // submissions wait for the end of the process
	saves  int   // so far
	broken error // of the store
	offset time.Duration

	runs      map[string]string    // by key
	submitted map[string]time.Time // when a key first was, by its last part
	twice     int                  // submissions of a key that had a run
	ended     map[string]End
	cancelled []string
	length    time.Duration // of a run; 0: it ends when told to
	runner    *Runner
}

func newWorld(t *testing.T) *world {
	return &world{t: t, stored: map[string]json.RawMessage{}, runs: map[string]string{}, submitted: map[string]time.Time{}, ended: map[string]End{}}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.offset)
}

// operation counts down to the loss of power. The caller holds mu.
func (w *world) operation() error {
	if w.until > 0 {
		if w.until--; w.until == 0 {
			w.dead = true
		}
	}
	if w.dead {
		return errPowerLost
	}
	return nil
}

func (w *world) Schedules(context.Context) (map[string]json.RawMessage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.stored), nil
}

func (w *world) SaveSchedule(_ context.Context, name string, data json.RawMessage) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := errors.Join(w.broken, w.operation()); err != nil {
		return err
	}
	w.saves++
	w.stored[name] = data
	return nil
}

func (w *world) DeleteSchedule(_ context.Context, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.stored, name)
	return w.broken
}

func (w *world) submit(ctx context.Context, spec Spec, f Firing) (string, error) {
	w.mu.Lock()
	hang := w.hang
	w.mu.Unlock()
	if hang {
		<-ctx.Done()
		return "", ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := errors.Join(w.fail, w.operation()); err != nil {
		return "", err
	}
	if !strings.Contains(string(w.stored[spec.Name]), f.Key) {
		w.t.Errorf("%s is submitted and was not stored before", f.Key)
	}
	if run, ok := w.runs[f.Key]; ok {
		w.twice++
		return run, nil
	}
	run := fmt.Sprintf("run%d", len(w.runs)+1)
	w.runs[f.Key] = run
	w.submitted[f.Key[strings.LastIndex(f.Key, "/")+1:]] = time.Now().Add(w.offset)
	if w.length > 0 {
		time.AfterFunc(w.length, func() { w.end(run, "completed") })
	}
	return run, nil
}

func (w *world) end(run, state string) {
	w.mu.Lock()
	w.ended[run] = End{Run: run, State: state, At: time.Now().Add(w.offset)}
	runner := w.runner
	w.mu.Unlock()
	if runner != nil {
		runner.Wake()
	}
}

func (w *world) ends(_ context.Context, runs []string) (list []End, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, run := range runs {
		if end, ok := w.ended[run]; ok {
			list = append(list, end)
		}
	}
	return list, nil
}

func (w *world) cancel(_ context.Context, run string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancelled = append(w.cancelled, run)
	w.ended[run] = End{Run: run, State: "cancelled", At: time.Now()}
	return nil
}

// start starts a Runner, over what was stored.
func (w *world) start(change ...func(*Options)) *Runner {
	w.t.Helper()
	opts := Options{Store: w, Submit: w.submit, Cancel: w.cancel, Ends: w.ends, Now: w.now, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, c := range change {
		c(&opts)
	}
	r, err := Start(w.t.Context(), opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runner, w.dead, w.hang = r, false, false
	return r
}

// stop stops the Runner.
func (w *world) stop() {
	w.runner.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runner = nil
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) add(s Spec) View {
	w.t.Helper()
	if s.Name == "" {
		s.Name = "test"
	}
	s.Workflow = "map"
	v, err := w.runner.Add(w.t.Context(), s)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// sleep lets time pass until nothing moves.
func (w *world) sleep(d time.Duration) {
	time.Sleep(d) // of the bubble: it takes no time
	synctest.Wait()
}

// Fake time begins on 2000-01-01 in UTC. In Berlin the clock went forward on 2000-03-26 and back on 2000-10-29.
func TestRunnerOverMonths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.length = 10 * time.Minute
		w.start()
		view := w.add(Spec{Cron: "30 2 * * *", Zone: "Europe/Berlin"})
		if want := "2000-01-01T01:30:00Z"; view.Next.UTC().Format(time.RFC3339) != want {
			t.Errorf("next at %v, want %s", view.Next, want)
		}
		const days = 330
		w.sleep(days * 24 * time.Hour)
		w.stop()
		if len(w.runs) != days || w.twice != 0 {
			t.Errorf("%d runs in %d days, %d submitted twice", len(w.runs), days, w.twice)
		}
		for key, at := range w.submitted {
			if late := at.Sub(parse(t, key)); late < 0 || late > time.Second {
				t.Errorf("%s was started at %v", key, at)
			}
		}
		for _, key := range []string{"2000-03-26T01:00:00Z", "2000-10-29T00:30:00Z"} { // 03:00 of summer time, the first 02:30
			if _, ok := w.submitted[key]; !ok {
				t.Errorf("nothing was started for %s", key)
			}
		}
		if w.saves > 4*days { // each firing is stored as decided, started and ended
			t.Errorf("%d times stored", w.saves)
		}
	})
}

func parse(t *testing.T, text string) time.Time { return at(t, text) }

func TestRunnerCrashes(t *testing.T) {
	t.Run("before the submission", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.start()
			w.hang = true
			w.add(Spec{Cron: "@hourly"})
			w.sleep(61 * time.Minute)
			w.stop()
			if len(w.runs) != 0 || !strings.Contains(string(w.stored["test"]), `"outbox"`) {
				t.Fatalf("%d runs; stored %s", len(w.runs), w.stored["test"])
			}
			w.start()
			w.sleep(time.Minute)
			w.stop()
			if len(w.runs) != 1 || w.twice != 0 {
				t.Errorf("runs %v, %d submitted twice", w.runs, w.twice)
			}
		})
	})
	t.Run("after the submission, before that is stored", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.start()
			w.add(Spec{Cron: "@hourly"})
			w.set(func() { w.until = 3 }) // stored, submitted, and then nothing
			w.sleep(61 * time.Minute)
			w.stop()
			w.start()
			w.sleep(time.Minute)
			w.stop()
			if len(w.runs) != 1 || w.twice != 1 {
				t.Errorf("runs %v, %d submitted twice", w.runs, w.twice)
			}
		})
	})
}

func TestRunnerStoresBeforeItActs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.start()
		w.add(Spec{Cron: "@hourly"})
		w.set(func() { w.broken = errors.New("disk full") })
		w.sleep(65 * time.Minute)
		if len(w.runs) != 0 {
			t.Errorf("%d runs were started and could not be stored", len(w.runs))
		}
		if _, err := r.Pause(t.Context(), "test", "me", ""); err == nil || r.List()[0].State.Paused != nil {
			t.Error("a pause that is not stored is none")
		}
		if reasons := fmt.Sprint(r.List()[0].Reasons); !strings.Contains(reasons, "disk full") {
			t.Errorf("the view says %s", reasons)
		}
		w.set(func() { w.broken = nil })
		w.sleep(5 * time.Minute)
		w.stop()
		if len(w.runs) != 1 {
			t.Errorf("%d runs after the disk has space again", len(w.runs))
		}
	})
}

func TestRunnerRetriesSubmissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.start()
		w.add(Spec{Cron: "@hourly"})
		w.set(func() { w.fail = apierr.New(apierr.Unavailable, "the engine is stopping") })
		w.sleep(150 * time.Minute) // what is decided and not submitted counts as under way: 02:00 is left out
		if view := r.List()[0]; len(w.runs) != 0 || view.State.Paused != nil || !strings.Contains(fmt.Sprint(view.Reasons), "engine is stopping") {
			t.Errorf("%d runs, %+v", len(w.runs), view)
		}
		w.set(func() { w.fail = nil })
		w.sleep(6 * time.Minute)
		if fired := r.List()[0].State.Fired; len(w.runs) != 1 || fired != 1 {
			t.Errorf("%d runs, %d fired", len(w.runs), fired)
		}
		w.stop()
	})
}

func TestRunnerPausesWhatCannotBeStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.start()
		w.add(Spec{Cron: "@hourly"})
		w.add(Spec{Name: "other", EverySeconds: 7200})
		w.set(func() { w.fail = apierr.New(apierr.NotFound, "there is no workflow map") })
		w.sleep(61 * time.Minute)
		w.set(func() { w.fail = nil })
		w.sleep(5 * time.Hour)
		view := r.List()[1]
		if view.State.Paused == nil || !strings.Contains(view.State.Paused.Why, "no workflow map") {
			t.Fatalf("%+v", view)
		}
		if len(w.runs) != 1 {
			t.Errorf("another schedule started %d runs", len(w.runs))
		}
		if _, err := r.Resume(t.Context(), "test"); err != nil {
			t.Fatal(err)
		}
		w.sleep(time.Second)
		w.stop()
		if _, ok := w.submitted["2000-01-01T01:00:00Z"]; !ok {
			t.Errorf("what was decided before the pause is lost: %v", w.submitted)
		}
	})
}

func TestRunnerCancelsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		w.add(Spec{Cron: "@hourly", Overlap: Cancel})
		w.sleep(2*time.Hour + time.Minute)
		w.stop()
		if len(w.runs) != 2 || fmt.Sprint(w.cancelled) != "[run1]" {
			t.Errorf("runs %v, cancelled %v", w.runs, w.cancelled)
		}
	})
}

func TestRunnerClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.length = time.Minute
		w.start()
		w.add(Spec{Cron: "@hourly"})
		w.sleep(3*time.Hour + 5*time.Minute) // 01:00 02:00 03:00
		w.set(func() { w.offset = 20 * time.Hour })
		w.sleep(2 * time.Minute) // 23:07 by the clock: the last missed one
		if _, ok := w.submitted["2000-01-01T23:00:00Z"]; !ok || len(w.runs) != 4 {
			t.Errorf("%v", w.submitted)
		}
		w.set(func() { w.offset = 0 })
		w.sleep(24 * time.Hour) // to 03:07 of the second day: from 00:00 on
		w.stop()
		if len(w.runs) != 8 || w.twice != 0 {
			t.Errorf("%d runs, %d submitted twice: %v", len(w.runs), w.twice, w.submitted)
		}
	})
}

func TestRunnerKeepsItsSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.length = time.Minute
		r := w.start()
		w.add(Spec{Name: "b", Cron: "@hourly"})
		w.add(Spec{Name: "a", Cron: "@hourly", MaxFirings: 2})
		if _, err := r.Add(t.Context(), Spec{Name: "a", Workflow: "map", Cron: "@daily"}); apierr.CodeOf(err) != apierr.Conflict {
			t.Errorf("a second one of the same name: %v", err)
		}
		if _, err := r.Pause(t.Context(), "b", "me", "holidays"); err != nil {
			t.Fatal(err)
		}
		w.stop()
		r = w.start()
		w.sleep(5 * time.Hour)
		list := r.List()
		if len(list) != 2 || list[0].Spec.Name != "a" || list[0].State.Fired != 2 || list[1].State.Paused == nil || len(w.runs) != 2 {
			t.Errorf("%+v; runs %v", list, w.runs)
		}
		if err := r.Remove(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{r.Remove(t.Context(), "a"), second(r.Pause(t.Context(), "a", "me", "")), second(r.Resume(t.Context(), "a"))} {
			if apierr.CodeOf(err) != apierr.NotFound {
				t.Errorf("of a schedule that is gone: %v", err)
			}
		}
		w.stop()
		if r = w.start(); len(r.List()) != 1 {
			t.Errorf("a schedule that was removed is back")
		}
		w.stop()
	})
}

func second(_ View, err error) error { return err }

// One schedule that cannot be read hinders no other, and is left as it is for those who can.
func TestRunnerWithAScheduleItCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		w.add(Spec{Name: "good", Cron: "@hourly"})
		w.stop()
		const odd = `{"spec":{"cron":7}}`
		w.stored["odd"] = json.RawMessage(odd)
		r := w.start()
		w.sleep(61 * time.Minute)
		if list := r.List(); len(list) != 2 || list[1].State.Paused == nil || len(w.runs) != 1 {
			t.Errorf("%+v; runs %v", list, w.runs)
		}
		if _, err := r.Resume(t.Context(), "odd"); err == nil {
			t.Error("it was resumed")
		}
		if string(w.stored["odd"]) != odd {
			t.Errorf("it became %s", w.stored["odd"])
		}
		if err := r.Remove(t.Context(), "odd"); err != nil || len(w.stored) != 1 {
			t.Errorf("%v, %v", err, w.stored)
		}
		w.stop()
	})
}

// stuck is a folder that does not answer, such as one on a server that is gone.
type stuck struct{ Folders }

func (stuck) Scan(ctx context.Context, _ Watch) *Scan {
	<-ctx.Done()
	return &Scan{Err: ctx.Err().Error()}
}

func TestRunnerWithAFolderThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.start(func(o *Options) { o.Scanner = stuck{} })
		w.add(Spec{Name: "stuck", Watch: &Watch{Folder: "/gone"}})
		w.add(Spec{Cron: "@hourly"})
		w.sleep(61 * time.Minute)
		if len(w.runs) != 1 {
			t.Errorf("other schedules started %d runs", len(w.runs))
		}
		if _, err := r.Pause(t.Context(), "stuck", "me", ""); err != nil {
			t.Error(err)
		}
		if err := r.Remove(t.Context(), "stuck"); err != nil {
			t.Error(err)
		}
		w.stop()
	})
}
