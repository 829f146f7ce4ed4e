package engine

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// full is how make test runs the random tests a second time without the race detector, which makes them eight times slower.
var full = flag.Bool("full", false, "run the tests that draw their crashes with all of their seeds")

// seeds are the first two of n, or with -full all.
func seeds(n uint64) uint64 {
	if *full {
		return n
	}
	return 2
}

// program bundles a script; call it outside of a bubble, because the bundler has goroutines of its own.
func program(t *testing.T, body string) script.Program {
	t.Helper()
	p, err := script.BundleText("flow.ts", `import { all, batch, each, evaluate, generate, log, now, output, read, t, uuid } from "loopkeeper";
const Answer = t.object({ of: t.string() });
export default async function flow(input: any) {`+body+`}`)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rig is one coordinator in a bubble: an engine that may die and come back over a ledger and a farm that stay.
type rig struct {
	t     *testing.T
	store *flaky
	farm  *farm
	e     *Engine
	opts  Options
}

func newRig(t *testing.T, f *farm, opts Options) *rig {
	t.Helper()
	s, err := ledger.Open(t.Context(), ledger.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: &flaky{Store: s}, farm: f, opts: opts}
	r.start()
	t.Cleanup(func() {
		r.e.Stop()
		f.wg.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// start makes a new engine, as a new process would.
func (r *rig) start() {
	r.t.Helper()
	o := r.opts
	o.Store = r.store
	o.Bodies = &opener{r.t, r.store.Store}
	if o.Host == nil {
		o.Host = script.NewHost(script.Limits{})
	}
	r.e = New(o)
	r.farm.mu.Lock()
	r.farm.sink = r.e
	r.farm.mu.Unlock()
	if err := r.e.Start(r.t.Context(), r.farm, r.farm); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) submit(p script.Program, input any) string {
	r.t.Helper()
	in, err := json.Marshal(input)
	if err != nil {
		r.t.Fatal(err)
	}
	id, _, err := r.e.Submit(r.t.Context(), Submission{Workflow: "flow", Program: p, Input: in})
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// wait follows a run to its end.
func (r *rig) wait(id string) View {
	r.t.Helper()
	views, err := r.e.Watch(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	var last View
	for v := range views {
		last = v
	}
	return last
}

func (r *rig) output(id, name string) string {
	r.t.Helper()
	outs, err := r.e.Outputs(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, o := range outs {
		if o.Name == name {
			return string(o.Value)
		}
	}
	return ""
}

func (r *rig) events(id string) []run.Event {
	r.t.Helper()
	rows, err := r.store.Events(r.t.Context(), id, 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []run.Event
	for _, row := range rows {
		ev, err := run.Decode(row.Seq, row.Time, row.Kind, row.Payload)
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, ev)
	}
	return out
}

// once checks the books of a run: no item that has ended was placed or sent again, and none ended twice.
func (r *rig) once(id string) {
	r.t.Helper()
	ended := map[string]bool{}
	results := map[string]bool{}
	end := func(pos, item int) {
		k := fmt.Sprint(pos, "/", item)
		if ended[k] {
			r.t.Errorf("item %s ended twice", k)
		}
		ended[k] = true
	}
	for _, ev := range r.events(id) {
		switch p := ev.Data.(type) {
		case *run.Placed:
			if ended[fmt.Sprint(p.Pos, "/", p.Item)] {
				r.t.Errorf("item %d/%d was called again after its end", p.Pos, p.Item)
			}
		case *run.AttemptSucceeded:
			k := fmt.Sprint(p.AttemptID)
			if results[k] {
				r.t.Errorf("attempt %s was recorded twice", k)
			}
			results[k] = true
			if p.Then == run.ThenSucceeded || p.Then == run.ThenFailed {
				end(p.Pos, p.Item)
			}
		case *run.AttemptFailed:
			if p.Then == run.ThenFailed {
				end(p.Pos, p.Item)
			}
		}
	}
}

// flaky is the real ledger, which can be told to fail like a process that dies or a disk that is full.
type flaky struct {
	ledger.Store
	left   atomic.Int64 // commits until it fails; 0 is never
	before bool         // fail before the commit, else after it

	commits atomic.Int64

	unreadable atomic.Value // the id of a run whose events cannot be read
}

func (f *flaky) Events(ctx context.Context, id string, after int64, limit int) ([]ledger.Event, error) {
	if id == f.unreadable.Load() {
		return nil, errDisk
	}
	return f.Store.Events(ctx, id, after, limit)
}

// OpenArtifact and ReadArtifactAt are not the engine's: it has bodies opened by its port.
func (f *flaky) OpenArtifact(context.Context, string) (io.ReadCloser, ledger.Artifact, error) {
	return nil, ledger.Artifact{}, errors.New("the engine opens a body of its store")
}

func (f *flaky) ReadArtifactAt(context.Context, string, int64, int) ([]byte, error) {
	return nil, errors.New("the engine reads a body of its store")
}

// opener opens bodies for everybody but the loop, which decides without.
type opener struct {
	t     *testing.T
	store ledger.Store
}

func (o *opener) OpenArtifact(ctx context.Context, sha string) (io.ReadCloser, ledger.Artifact, error) {
	o.notOnLoop()
	return o.store.OpenArtifact(ctx, sha)
}

func (o *opener) ReadArtifactAt(ctx context.Context, sha string, off int64, n int) ([]byte, error) {
	o.notOnLoop()
	return o.store.ReadArtifactAt(ctx, sha, off, n)
}

func (o *opener) notOnLoop() {
	var frames [64]uintptr
	stack := runtime.CallersFrames(frames[:runtime.Callers(1, frames[:])])
	for {
		f, more := stack.Next()
		if strings.HasSuffix(f.Function, "(*Engine).loop") {
			o.t.Error("the loop opens a body")
		}
		if !more {
			return
		}
	}
}

var errDisk = errors.New("no space left on device")

func (f *flaky) Append(ctx context.Context, c ledger.Commit) error {
	f.commits.Add(1)
	if f.left.Load() == 0 || f.left.Add(-1) > 0 {
		return f.Store.Append(ctx, c)
	}
	if !f.before {
		if err := f.Store.Append(ctx, c); err != nil {
			return err
		}
	}
	return errDisk
}

func items(n int) map[string]any {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("item %03d", i))
	}
	return map[string]any{"items": out}
}

// inputOf is items(n) as a submission has it.
func inputOf(n int) json.RawMessage {
	raw, _ := json.Marshal(items(n))
	return raw
}
