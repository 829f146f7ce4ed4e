package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
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
	return fmt.Sprintf("the script to fail at %s:%d: %s", e.File, e.Line, e.Message)
}

// delivery is what a script is given, on its way there.
type delivery struct {
	at   run.Delivery
	what run.Settled
}

// durable says whether it needs nothing that may only come with this turn's commit.
func (d delivery) durable() bool { return d.what.Load == nil && d.what.Page == nil && d.what.Event == 0 }

// settled is a delivery as the state has it.
func settled(s *run.State, at run.Delivery) delivery {
	settle := func() (run.Settled, error) { return s.Settle(at.Pos) }
	if at.Check {
		settle = func() (run.Settled, error) { return s.SettleCheck(at) }
	}
	what, err := settle()
	if err != nil { // a value that does not marshal came from a worker as JSON, so this cannot be
		what = run.Settled{Failure: &run.Failure{Kind: "internal", Message: err.Error(), Advice: run.Never}}
	}
	return delivery{at, what}
}

// What is replayed goes to the script in parts, so that neither the loop is held up nor memory filled by all of it.
const (
	partCount = 256
	partBytes = 4 << 20
)

// part is the next part of what a script was given.
func part(s *run.State, from, to int) []delivery {
	var out []delivery
	for size := 0; from < to && len(out) < partCount && size < partBytes; from++ {
		d := settled(s, s.Deliveries[from])
		size += len(d.what.Value)
		out = append(out, d)
	}
	return out
}

// record is what a run's script asked for and judged before. A replay has to do the same again.
type record struct {
	requests []run.Request
	next     int                     // position of the next request
	answers  map[checked]run.Checked // of checks, as far as they were asked for and not answered again
}

func newRecord(s *run.State) record {
	r := record{answers: map[checked]run.Checked{}, requests: make([]run.Request, len(s.Requests))}
	for i, st := range s.Requests {
		r.requests[i] = run.Request{Pos: st.Pos, Kind: st.Kind, Body: st.Body, Note: st.Note}
	}
	return r
}

// reaction is what a script did that is not recorded.
type reaction struct {
	requests []run.Request
	checks   []run.CheckAnswer
	failed   []run.Reject // items whose check failed by itself
	end      *run.ScriptEnd
}

// compare holds a yield against the record.
func (r *record) compare(y script.Yield, out *reaction) error {
	for _, got := range y.Requests {
		if r.next < len(r.requests) {
			was := r.requests[r.next]
			if script.Compare(script.Request{Pos: was.Pos, Kind: was.Kind, Body: was.Body, Note: was.Note}, got) != nil || was.Note != got.Note {
				at := differ(was.Body, got.Body)
				return &divergence{Pos: was.Pos, Expected: show(was.Kind, was.Body, at), Got: show(got.Kind, got.Body, at)}
			}
		} else {
			out.requests = append(out.requests, run.Request{Pos: got.Pos, Kind: got.Kind, Body: got.Body, Note: got.Note})
		}
		r.next++
	}
	if err := r.answered(y.Checks, out); err != nil || y.End == nil {
		return err
	}
	out.end = &run.ScriptEnd{}
	if f := y.End.Failure; f != nil {
		if f.Kind == script.Crashed || f.Kind == script.Incompatible { // its host's doing
			return f
		}
		out.end.Error = scriptError(f)
	}
	return nil
}

// complete says whether all that is recorded was done again.
func (r *record) complete(given, behind int, out reaction) error {
	got := "nothing more"
	if out.end != nil {
		got = "the end of the script"
		if out.end.Error != nil {
			if got = showEnd(out.end.Error); byMachine(out.end.Error) {
				return nil
			}
		}
	}
	if r.next < len(r.requests) {
		was := r.requests[r.next]
		return &divergence{Pos: was.Pos, Expected: show(was.Kind, was.Body, 0), Got: got}
	}
	if err := r.unanswered(got); err != nil || given >= behind {
		return err
	}
	return &divergence{Pos: r.next, Expected: "a script that waits", Got: got}
}

// differ is where two texts begin to differ.
func differ(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// shown is how much of a request people see, bytes.
const shownBytes = 300

// show is a request for people: its beginning, and where it gets long what is around at.
func show(kind string, body []byte, at int) string {
	if len(body) <= shownBytes {
		return kind + " " + string(body)
	}
	from := max(0, min(at-shownBytes/2, len(body)-shownBytes))
	cut := strings.ToValidUTF8(string(body[from:min(from+shownBytes, len(body))]), "")
	if from > 0 {
		return fmt.Sprintf("%s (from byte %d) …%s…", kind, from, cut)
	}
	return kind + " " + cut + "…"
}

// player gives a script what was recorded, and holds what it does against the record.
type player struct {
	record
	e       *Engine
	id      string
	with    func(ctx context.Context, f func(*run.State)) error // f reads the state where nobody changes it
	session script.Session
}

// catchUp starts the script and gives it what it was given before.
func (p *player) catchUp(ctx context.Context, pinned run.Created, behind int) (out reaction, err error) {
	program, err := p.e.program(ctx, pinned)
	if err != nil {
		return out, err
	}
	session, y, err := p.e.o.Host.Start(ctx, script.Start{Program: program, Input: pinned.Input, Seed: pinned.Seed, Clock: pinned.Clock})
	if err != nil {
		return out, err
	}
	p.session = session
	if err := p.compare(y, &out); err != nil {
		return out, err
	}
	given := 0
	for given < behind && out.end == nil {
		var next []delivery
		if err := p.with(ctx, func(s *run.State) { next = part(s, given, behind) }); err != nil {
			return out, err
		}
		n, err := p.feed(ctx, next, &out)
		if given += n; err != nil {
			return out, err
		}
	}
	return out, p.complete(given, behind, out)
}

func (p *player) close() {
	if p.session != nil {
		_ = p.session.Close() // it has nothing worth saving
	}
}

// feed gives the script deliveries and says to how many of them it reacted: all, unless it ended.
func (p *player) feed(ctx context.Context, part []delivery, out *reaction) (heard int, err error) {
	if err := p.events(ctx, part); err != nil {
		return 0, err
	}
	var given []script.Delivery
	for i, size := 0, 0; i < len(part) && out.end == nil; i++ {
		d, err := p.open(ctx, part[i])
		if err != nil {
			return heard, err
		}
		given = append(given, d)
		if size += len(d.Value); size < partBytes && i+1 < len(part) {
			continue
		}
		yields, err := p.session.DeliverAll(ctx, given)
		for k, y := range yields {
			p.asked(part[heard].at)
			if heard++; k < len(given) {
				if err := p.compare(y, out); err != nil {
					return heard, err
				}
			}
		}
		if err != nil {
			return heard, err
		}
		given, size = nil, 0
	}
	return heard, nil
}

// open makes a delivery what the script is given.
func (p *player) open(ctx context.Context, n delivery) (script.Delivery, error) {
	out := script.Delivery{Pos: n.at.Pos, Time: n.at.Time, Value: n.what.Value, Check: n.at.Check, Item: n.at.Item}
	switch load := n.what.Load; {
	case n.what.Failure != nil:
		out.Err = &script.CallError{Kind: n.what.Failure.Kind, Message: n.what.Failure.Message, Step: n.at.Pos}
	case n.what.Page != nil:
		value, err := p.e.page(ctx, p.id, n.what.Page)
		if err != nil {
			return out, fmt.Errorf("read the items for step %d: %w", n.at.Pos, err)
		}
		out.Value = value
	case load != nil && load.Bytes > script.MaxValue:
		out.Err = script.TooLarge(n.at.Pos, load.Bytes)
	case load != nil:
		body, err := p.e.body(ctx, load.Ref)
		if err != nil {
			return out, apierr.Wrap(err, apierr.CodeOf(err), "open the result of step %d", n.at.Pos)
		}
		if out.Value = body; load.Text {
			out.Value, err = textValue(body)
		}
		return out, err
	}
	return out, nil
}

// textValue is a text as a JSON string.
func textValue(body []byte) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(strings.ToValidUTF8(string(body), "\uFFFD"))
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
