package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// follower watches one run and shows it. Ctrl-C ends the watching, never the run, unless the user says so.
type follower struct {
	a     *app
	c     *client
	id    string
	show  ui.Progress
	items *collector // nil when nobody wants them
	to    destination
	last  *coordinatorv1.Run
	views chan *coordinatorv1.Run // the newest view that was not shown yet
	plans map[string]bool         // ids of steps whose plan was shown
	away  atomic.Bool             // the stream of views broke off and is not back yet
	over  chan struct{}           // closed when there will be no more views
	err   error                   // why, when the run has not ended; read after over
	asked time.Time               // since when nothing goes on before a person did something, zero while something does
}

// follow watches a run until it ends and returns it as it ended. When the user leaves before, the error says with which
// exit code.
func (a *app) follow(ctx context.Context, c *client, id string, items *collector, to destination) (*coordinatorv1.Run, error) {
	f := &follower{a: a, c: c, id: id, show: a.progress(), items: items, to: to, views: make(chan *coordinatorv1.Run, 1), over: make(chan struct{}), plans: map[string]bool{}}
	// From here on Ctrl-C is a question to the user.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	var work sync.WaitGroup
	work.Go(func() { f.stream(ctx) })
	defer func() {
		signal.Stop(interrupts)
		cancel()
		work.Wait()
	}()
	err := f.loop(ctx, interrupts)
	return f.last, err
}

// progress is how a run is shown here.
func (a *app) progress() ui.Progress {
	switch {
	case a.flags.output == "jsonl":
		return &ui.JSONLines{W: a.stdout}
	case a.flags.output == "json":
		return ui.Silent{}
	case live(a.stderr):
		return &ui.Live{W: a.stderr, Style: a.style(a.stderr), Size: func() (int, int) { return size(a.stderr) }, Hint: "Ctrl-C: detach or cancel"}
	default:
		return &ui.Lines{W: a.stderr}
	}
}

func (f *follower) loop(ctx context.Context, interrupts <-chan os.Signal) error {
	tick := time.NewTicker(ui.RedrawInterval)
	defer tick.Stop()
	for {
		select {
		case v := <-f.views:
			if err := f.take(ctx, v); err != nil {
				return err
			}
			f.person(v)
		case <-tick.C:
			switch {
			case f.away.Load():
				f.show.Away(time.Now())
			case f.a.giveUp && !f.asked.IsZero() && time.Since(f.asked) > settled:
				return nil
			case f.last != nil:
				f.show.Show(f.last, time.Now())
			}
		case s := <-interrupts:
			if err := f.interrupted(ctx, s); err != nil {
				return err
			}
		case <-f.over:
			return f.finish(ctx)
		}
	}
}

// settled is how long a run has to wait for a person before it counts as waiting: what a fork takes over, and what a clock answers at
// once, looks like that for a moment.
const settled = 2 * time.Second

// person notes whether a view waits for a person.
func (f *follower) person(v *coordinatorv1.Run) {
	switch {
	case !needsPerson(v):
		f.asked = time.Time{}
	case f.asked.IsZero():
		f.asked = time.Now()
	}
}

func (f *follower) take(ctx context.Context, v *coordinatorv1.Run) error {
	f.last = v
	f.show.Show(v, time.Now())
	err := firstError(f.items.advance(ctx, v), f.plan(ctx, v))
	if codeOf(err) == apierr.Unavailable { // it restarts: the stream waits for it, and finish hands out what is left
		return nil
	}
	return err
}

// plan shows each plan that a step of the run made, once it is known.
func (f *follower) plan(ctx context.Context, v *coordinatorv1.Run) error {
	for _, s := range v.GetSteps() {
		if s.GetKind() != "plan" || s.GetState() != "succeeded" || f.plans[s.GetId()] {
			continue
		}
		r, err := f.c.GetItems(ctx, &coordinatorv1.GetItemsRequest{RunId: f.id, Step: s.GetId(), Limit: 1})
		if err != nil {
			return err
		}
		f.plans[s.GetId()] = true
		for _, i := range r.GetItems() {
			f.show.Say(ui.Plan(f.a.style(f.a.stderr), i.GetValueJson()))
		}
	}
	return nil
}

// finish shows the end and hands out the items that no view announced.
func (f *follower) finish(ctx context.Context) error {
	select {
	case v := <-f.views:
		f.last = v
	default:
	}
	if f.err != nil || f.last == nil {
		return firstError(f.err, apierr.New(apierr.Unavailable, "the coordinator stopped before it said anything about run %s", f.id))
	}
	if err := f.plan(ctx, f.last); err != nil {
		return err
	}
	f.show.End(f.last, time.Now())
	return f.items.rest(ctx, f.last)
}

// patience is how long a coordinator may be away: a restart takes seconds, and the run goes on by itself.
const patience = time.Minute

// stream receives views until the run has ended, across a restart of the coordinator.
func (f *follower) stream(ctx context.Context) {
	defer close(f.over)
	seen := time.Now()
	for wait := 250 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		ended, any, err := f.receive(ctx)
		if ended || ctx.Err() != nil {
			return
		}
		if any {
			seen, wait = time.Now(), 250*time.Millisecond
		}
		if codeOf(err) != apierr.Unavailable || time.Since(seen) > patience {
			f.err = apierr.Wrap(apierr.FromStatus(err), apierr.Unavailable, "watch run %s", f.id).WithNext("loopkeeper up", "loopkeeper watch "+f.id)
			return
		}
		f.away.Store(true)
		pause := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// receive passes on the views of one stream. ended says that the last one was the run's end.
func (f *follower) receive(ctx context.Context) (ended, any bool, err error) {
	stream, err := f.c.WatchRun(ctx, &coordinatorv1.WatchRunRequest{RunId: f.id})
	if err != nil {
		return false, false, err
	}
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			err = apierr.New(apierr.Unavailable, "the coordinator is stopping")
		}
		if err != nil {
			return ended, any, err
		}
		any, ended = true, msg.GetRun().GetEnded() != nil
		select {
		case <-f.views:
		default:
		}
		f.away.Store(false)
		f.views <- msg.GetRun() // there is room: nobody else sends
		if ended {
			return true, true, nil
		}
	}
}

// leave says what goes on without us, and how to get the rest of the results.
func (f *follower) leave() {
	f.a.note("run %s goes on", f.id)
	again := f.to.again(f.id)
	switch {
	case f.to.empty():
	case f.to.text:
		f.a.note("%s is not written yet; when the run has ended, %s writes it", f.to.out, again)
	case f.to.before > 0:
		f.a.note("%s holds %d items of this run and the run before; %s writes all of this run", f.to.name(), f.to.before+f.items.got(), again)
	case batchTotal(f.last) == 0:
		f.a.note("%s holds nothing yet; %s completes it", f.to.name(), again)
	default:
		f.a.note("%s holds %d of %s; %s completes it", f.to.name(), f.items.got(), ui.Plural(batchTotal(f.last), "item", "items"), again)
	}
	f.a.next(again, "loopkeeper cancel "+f.id)
}

// interrupted is Ctrl-C: on a terminal a question, elsewhere the end of the watching.
func (f *follower) interrupted(ctx context.Context, s os.Signal) error {
	if f.a.leave {
		return exitWith(exitInterrupted)
	}
	key := byte('d')
	if s == os.Interrupt && terminal(f.a.stdin) && live(f.a.stderr) {
		f.show.Say("detach (d), cancel the run (c), stay (Enter)?")
		key = f.a.askKey(f.over)
	}
	switch key {
	case 'd', 'D', 3: // 3 is Ctrl-C again
		f.leave()
		return exitWith(exitInterrupted)
	case 'c', 'C':
		_, err := f.c.CancelRun(ctx, &coordinatorv1.CancelRunRequest{RunId: f.id, Reason: "cancelled at the command line"})
		if codeOf(err) == apierr.Conflict { // it has ended meanwhile
			return nil
		}
		return err
	}
	return nil
}
