package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// active is a run that has not ended, as the loop holds it.
type active struct {
	id       string // of the run; never changes, so any goroutine may read it
	state    *run.State
	driver   *driver // nil while no host is given to its script, and after the script ended
	given    int     // deliveries handed to the driver
	heard    int     // of these, those the script has reacted to
	crashes  int     // times its script host died
	waits    map[int]wait
	decided  map[int]*decided // what was recorded of each step
	watchers map[*watcher]struct{}
	touched  bool      // by this turn
	retry    time.Time // the first end of a backoff, zero for none
	stale    bool      // its watchers have not seen the newest view
	shown    time.Time
	quiet    int          // how many deliveries its script had had when it gave its host back; -1: nobody knows
	told     bool         // of its end: its parent and its children know
	spawning map[int]bool // steps whose child is being made ready
	adopting map[int]int  // steps that may yet take results over, and by how many ways: nothing of them is placed
	naming   map[int]*naming
	bounded  boundMark
	looks    map[int]look      // by step, of writes whose outcome is unknown
	instead  map[string]string // as state.Pinned.Models, of a run that an earlier version forked
}

func newActive(s *run.State) *active {
	return &active{id: s.Pinned.ID, state: s, waits: map[int]wait{}, decided: map[int]*decided{}, looks: map[int]look{}, watchers: map[*watcher]struct{}{}, quiet: -1,
		spawning: map[int]bool{}, adopting: map[int]int{}, naming: map[int]*naming{}}
}

func (e *Engine) add(a *active) {
	a.id = a.state.Pinned.ID
	e.runs[a.id] = a
	e.order = append(e.order, a)
}

// Submit starts a run and returns its id once that is durable. A key that is known returns its run and existing true.
func (e *Engine) Submit(ctx context.Context, s Submission) (id string, existing bool, err error) {
	if s.TimeLimit > 0 {
		s.Limits.ActiveSeconds = int64(s.TimeLimit.Seconds())
	}
	created := run.Created{Workflow: s.Workflow, BuiltIn: s.BuiltIn, Interface: s.Interface, Input: s.Input, Key: s.Key, Seed: newSeed(),
		Priority: s.Priority, Weight: s.Weight, Limits: resolved(s.Limits, e.o.DefaultLimits), Submitted: s.Submitted, Parent: s.Parent, Base: s.Base}
	created.SetBy = setBy(created.Limits, s.SetBy, "default")
	if err := e.pinSettings(ctx, &created); err != nil {
		return "", false, err
	}
	if err := e.pin(ctx, &created, s.Program); err != nil {
		return "", false, err
	}
	got, err := ask(ctx, e, func(t *turn) func() (submitted, error) { return reply(t.submit(created)) })
	return got.id, got.existing, err
}

type submitted struct {
	id       string
	existing bool
}

func (t *turn) submit(created run.Created) (submitted, error) {
	e := t.e
	if id, err := e.byKey(created.Key); err != nil || id != "" {
		return submitted{id, id != ""}, err
	}
	id, err := e.newID()
	if err != nil {
		return submitted{}, err
	}
	created.ID = id
	if created.Clock.IsZero() {
		created.Clock = t.now
	}
	a := newActive(&run.State{})
	if err := t.execute(a, run.Create{Created: created}); err != nil {
		return submitted{}, err
	}
	e.add(a)
	return submitted{id: id}, nil
}

func (e *Engine) keep(ctx context.Context, name string, body []byte) (string, error) {
	art, err := e.o.Store.PutArtifact(ctx, name, bytes.NewReader(body))
	if err != nil {
		return "", apierr.Wrap(err, apierr.Unavailable, "store the script %s", name)
	}
	return art.SHA256, nil
}

// byKey returns the id of the run with an idempotency key, "" when there is none.
func (e *Engine) byKey(key string) (string, error) {
	if key == "" {
		return "", nil
	}
	for _, a := range e.order { // some may be younger than the last commit
		if a.state.Pinned.Key == key {
			return a.state.Pinned.ID, nil
		}
	}
	rows, err := e.o.Store.Runs(e.ctx, ledger.RunFilter{Key: key, Limit: 1})
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].ID, nil
}

// Cancel ends a run, what it has in flight, and everything that it has spawned and not detached, at one moment. Conflict: it has ended.
func (e *Engine) Cancel(ctx context.Context, id, reason string) (View, error) {
	id, err := e.Resolve(ctx, id)
	if err != nil {
		return View{}, err
	}
	return ask(ctx, e, func(t *turn) func() (View, error) {
		a := e.runs[id]
		if a == nil {
			return reply(View{}, apierr.New(apierr.Conflict, "run %s has already ended", id).WithNext("loopkeeper show "+id))
		}
		if err := t.cancelTree(a, reason); err != nil {
			return reply(View{}, err)
		}
		return func() (View, error) { return e.view(a), nil }
	})
}

// retire takes an ended run out of the loop's hands: its attempts are cancelled, its script and its watchers end.
func (t *turn) retire(a *active) {
	e := t.e
	for _, f := range e.sortedFlights() {
		if f.run == a {
			t.orphan(f)
			e.dispatch.Cancel(f.node, f.key)
		}
	}
	for _, c := range e.tools {
		if c.run == a {
			c.orphaned = true
			c.cancel()
		}
	}
	e.countBusy()
	e.placeAgain() // slots and a script host are free
	if a.driver != nil {
		a.driver.cancel()
	}
	e.show(a, t.now)
	for w := range a.watchers {
		w.close()
	}
	clear(a.watchers)
	delete(e.runs, a.state.Pinned.ID)
	delete(e.received, a.state.Pinned.ID)
	e.order = slices.DeleteFunc(e.order, func(o *active) bool { return o == a })
	e.o.Log.Info("a run has ended", "run", a.state.Pinned.ID, "state", a.state.Status)
}

// expire ends what time ends: budgets of active time, and waits that have one.
func (t *turn) expire() {
	for _, a := range t.e.order {
		if at := a.state.NextTimer(); !at.IsZero() && !t.now.Before(at) {
			_ = t.execute(a, run.Fire{}) // logged there
		}
		if end := a.state.Deadline(); !end.IsZero() && !t.now.Before(end) {
			_ = t.execute(a, run.Expire{}) // logged there
		}
	}
}

// idAlphabet has no letters or digits that look alike.
const idAlphabet = "23456789abcdefghjkmnpqrstvwxyz"

// newID returns an id that no run has: four characters, longer ones only when those clash.
func (e *Engine) newID() (string, error) {
	for n := 4; ; n++ {
		for range 8 {
			id := randomID(n)
			if e.runs[id] != nil {
				continue
			}
			rows, err := e.o.Store.Runs(e.ctx, ledger.RunFilter{Prefix: id, Limit: 1})
			if err != nil {
				return "", err
			}
			if len(rows) == 0 {
				return id, nil
			}
		}
	}
}

func randomID(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	for i := range b {
		b[i] = idAlphabet[int(b[i])%len(idAlphabet)]
	}
	return string(b)
}

func newSeed() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:])                               // never fails
	return int64(binary.LittleEndian.Uint64(b[:]) >> 11) // 53 bits: exact in a script
}

// sortedFlights are the attempts in flight in a fixed order, so that what follows from a turn does not depend on a map.
func (e *Engine) sortedFlights() []*flight {
	out := make([]*flight, 0, len(e.flights))
	for _, f := range e.flights {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *flight) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.key, b.key))
	})
	return out
}
