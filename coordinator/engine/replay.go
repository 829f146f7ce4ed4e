package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

// ReplayReport is what became of a replay.
type ReplayReport struct {
	Steps      int             // requests that were made again and compared, notes included
	Took       time.Duration   // from reading the ledger to the last comparison
	State      run.Status      // of the run
	Divergence *run.Divergence // nil: the script did what is recorded
}

// Replay runs a run's script over what the ledger has, to see whether it does the same again. Nothing is called and nothing is written.
// NotFound: there is no such run, or a body that its script was given is not there any more.
func (e *Engine) Replay(ctx context.Context, id string) (ReplayReport, error) {
	id, err := e.Resolve(ctx, id)
	if err != nil {
		return ReplayReport{}, err
	}
	select { // its host is one more than those of runs under way
	case e.hosts.replaying <- struct{}{}:
		defer func() { <-e.hosts.replaying }()
	case <-ctx.Done():
		return ReplayReport{}, ctx.Err()
	}
	began := time.Now()
	s, err := load(ctx, e.o.Store, id)
	if err != nil {
		return ReplayReport{}, err
	}
	report := ReplayReport{State: s.Status}
	if s.Started.IsZero() {
		return report, nil
	}
	p := &player{e: e, id: id, record: newRecord(s), with: func(_ context.Context, f func(*run.State)) error { f(s); return nil }}
	out, err := p.catchUp(ctx, s.Pinned, len(s.Deliveries))
	p.close()
	if err == nil {
		err = p.ended(s, out)
	}
	report.Steps, report.Took = min(p.next, len(p.requests)), time.Since(began)
	if diverged := (*divergence)(nil); errors.As(err, &diverged) {
		report.Divergence = (*run.Divergence)(diverged)
		return report, nil
	}
	if err != nil {
		return report, fmt.Errorf("replay run %s: %w", id, err)
	}
	return report, nil
}

// ended compares how the script ended with how it did. Limits of a machine may strike another time, or not.
func (r *record) ended(s *run.State, out reaction) error {
	if s.Script == nil || s.Script.Error != nil && byMachine(s.Script.Error) {
		return nil
	}
	got, want := "the script waits", showEnd(s.Script.Error)
	switch {
	case len(out.requests) > 0:
		got = show(out.requests[0].Kind, out.requests[0].Body, 0)
	case out.end != nil:
		got = showEnd(out.end.Error)
	}
	if got == want {
		return nil
	}
	return &divergence{Pos: len(r.requests), Expected: want, Got: got}
}

func byMachine(e *run.Error) bool {
	switch script.FailureKind(e.Kind) {
	case script.Crashed, script.CPULimit, script.Memory:
		return true
	}
	return false
}

func showEnd(e *run.Error) string {
	if e == nil {
		return "the end of the script"
	}
	return fmt.Sprintf("the end of the script, which failed at %s:%d: %s", e.File, e.Line, e.Message)
}
