package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Store keeps what is known of each schedule: one JSON value per name.
type Store interface {
	Schedules(ctx context.Context) (map[string]json.RawMessage, error)
	// SaveSchedule stores or replaces; it is durable on return.
	SaveSchedule(ctx context.Context, name string, data json.RawMessage) error
	DeleteSchedule(ctx context.Context, name string) error
}

// Options are what a Runner needs. All but Scanner and Now are required.
type Options struct {
	Store Store
	// Submit starts the workflow of spec, and returns the run. A second Submit with the firing's key must return the same run. An error that
	// no second try can mend has the code InvalidArgument, NotFound or Conflict; it pauses the schedule.
	Submit func(ctx context.Context, spec Spec, f Firing) (run string, err error)
	// Cancel asks for the cancellation of a run. One that has ended is no error.
	Cancel func(ctx context.Context, run string) error
	// Ends says which of the runs have ended, and how.
	Ends    func(ctx context.Context, runs []string) ([]End, error)
	Scanner Scanner          // nil: Folders{}
	Now     func() time.Time // nil: time.Now; tests set a clock back with it
	Logger  *slog.Logger
}

// View is a schedule as it is shown.
type View struct {
	Spec    Spec      `json:"spec"`
	State   State     `json:"state"`
	Files   int       `json:"files,omitempty"`   // that a watched folder has and that need nothing; State.Known is left out
	Next    time.Time `json:"next"`              // when it is decided again; zero: when something happens
	Reasons []string  `json:"reasons,omitempty"` // of the last decision, and what hinders it
}

// stored is what the Store keeps.
type stored struct {
	Spec  Spec  `json:"spec"`
	State State `json:"state"`
}

// Runner carries schedules out. It owns one goroutine per schedule, so that a folder that does not answer holds up no other.
type Runner struct {
	opts    Options
	ctx     context.Context
	stop    context.CancelFunc
	working sync.WaitGroup

	mu      sync.Mutex
	entries map[string]*entry
}

// Start reads the schedules and begins to carry them out. What was decided before a crash and maybe not submitted is submitted again,
// under the same key.
func Start(ctx context.Context, opts Options) (*Runner, error) {
	if opts.Scanner == nil {
		opts.Scanner = Folders{}
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	all, err := opts.Store.Schedules(ctx)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.Internal, "read the schedules")
	}
	r := &Runner{opts: opts, entries: map[string]*entry{}}
	r.ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	for name, data := range all {
		var s stored
		if err := json.Unmarshal(data, &s); err != nil {
			opts.Logger.Error("a schedule cannot be read and is not carried out", "schedule", name, "error", err)
			s = stored{Spec: Spec{Name: name}, State: State{}.Pause(opts.Now(), "loopkeeper", "what is stored of it cannot be read: "+err.Error())}
			r.entries[name] = r.newEntry(s, nil) // it has no loop: what is stored stays as it is until it is removed
			continue
		}
		r.entries[name] = r.newEntry(s, data)
		r.begin(r.entries[name])
	}
	return r, nil
}

// Close stops and waits. What is decided is stored.
func (r *Runner) Close() {
	r.stop()
	r.working.Wait()
}

// Wake makes every schedule look again now, such as when a run has ended.
func (r *Runner) Wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		e.nudge()
	}
}

// Add makes a schedule and begins to carry it out.
func (r *Runner) Add(ctx context.Context, spec Spec) (View, error) {
	spec, err := Complete(spec)
	if err != nil {
		return View{}, err
	}
	e := r.newEntry(stored{spec, NewState(r.opts.Now())}, nil)
	facts := r.firstLook(ctx, e)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[spec.Name] != nil {
		return View{}, apierr.New(apierr.Conflict, "there is a schedule %q already", spec.Name).
			WithNext("choose another name, or give --replace", "loopkeeper schedule show "+spec.Name)
	}
	e.decide(facts) // so that the view says when
	if err := e.save(ctx, e.state); err != nil {
		return View{}, err
	}
	r.entries[spec.Name] = e
	r.begin(e)
	return e.view(), nil
}

// longestFirstLook bounds how long Add waits for a folder.
const longestFirstLook = 2 * time.Second

// firstLook is what a watched folder holds when its schedule is made: a file that comes as soon as Add has returned is a new one. Of a
// folder that does not answer in time the first look is a later one.
func (r *Runner) firstLook(ctx context.Context, e *entry) Facts {
	if e.spec.Watch == nil {
		return Facts{}
	}
	seen := make(chan *Scan, 1) // nobody may wait for it any more
	r.working.Go(func() { seen <- r.opts.Scanner.Scan(r.ctx, *e.spec.Watch) })
	select {
	case scan := <-seen:
		return Facts{Scan: scan}
	case <-time.After(longestFirstLook):
	case <-ctx.Done():
	}
	return Facts{}
}

// Remove ends a schedule. Runs that it started go on.
func (r *Runner) Remove(ctx context.Context, name string) error {
	r.mu.Lock()
	e := r.entries[name]
	r.mu.Unlock()
	if e == nil {
		return unknown(name)
	}
	if err := e.remove(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, name)
	return nil
}

// Pause stops the firings of a schedule until Resume; both take effect with the next decision.
func (r *Runner) Pause(ctx context.Context, name, by, why string) (View, error) {
	return r.change(ctx, name, func(s State) State { return s.Pause(r.opts.Now(), by, why) })
}

// Resume ends a pause.
func (r *Runner) Resume(ctx context.Context, name string) (View, error) {
	return r.change(ctx, name, func(s State) State { return s.Resume(r.opts.Now()) })
}

func (r *Runner) change(ctx context.Context, name string, change func(State) State) (View, error) {
	r.mu.Lock()
	e := r.entries[name]
	r.mu.Unlock()
	if e == nil {
		return View{}, unknown(name)
	}
	return e.change(ctx, change)
}

// List shows every schedule, by name.
func (r *Runner) List() []View {
	r.mu.Lock()
	defer r.mu.Unlock()
	var views []View
	for _, e := range r.entries {
		views = append(views, e.view())
	}
	slices.SortFunc(views, func(a, b View) int { return cmp.Compare(a.Spec.Name, b.Spec.Name) })
	return views
}

func (r *Runner) begin(e *entry) {
	r.working.Go(func() { e.loop(r.ctx) })
}

func unknown(name string) error {
	return apierr.New(apierr.NotFound, "there is no schedule %q", name).WithNext("loopkeeper schedule list")
}
