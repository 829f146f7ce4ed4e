package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/tools/policy"
)

// Options are what the tools need. Bodies and Records are required where a workspace or a tool with effects is given.
type Options struct {
	Workspaces []Workspace
	Bodies     Bodies
	Records    Records
	More       []Tool // beside file.*; such as EffectLog in tests
}

// Registry holds the tools of a coordinator. It is safe for concurrent use.
type Registry struct {
	tools   map[string]registered
	records Records
	spaces  *workspaces
	keys    locks
}

type registered struct {
	Tool
	Description
	input *inputSchema
}

// New opens the workspaces and registers file.read, file.write, file.list and what Options.More holds. A workspace that cannot be
// opened is an error that names it; Close releases them.
func New(opts Options) (*Registry, error) {
	spaces, err := openWorkspaces(opts.Workspaces)
	if err != nil {
		return nil, err
	}
	r := &Registry{tools: map[string]registered{}, records: opts.Records, spaces: spaces}
	files := files{spaces: spaces, bodies: opts.Bodies, paths: &locks{}}
	for _, t := range append([]Tool{fileRead{files}, fileWrite{files}, fileList{files}}, opts.More...) {
		if err := r.register(t); err != nil {
			return nil, errors.Join(err, spaces.close())
		}
	}
	return r, nil
}

// Close releases the workspaces. No call may be under way.
func (r *Registry) Close() error { return r.spaces.close() }

func (r *Registry) register(t Tool) error {
	d := t.Describe()
	if _, ok := r.tools[d.Name]; ok {
		return fmt.Errorf("the tool %s is registered twice", d.Name)
	}
	schema, err := compileInput(d)
	if err != nil {
		return err
	}
	r.tools[d.Name] = registered{Tool: t, Description: d, input: schema}
	return nil
}

// Tools describes every tool, by name.
func (r *Registry) Tools() []Description {
	var out []Description
	for _, name := range slices.Sorted(maps.Keys(r.tools)) {
		out = append(out, r.tools[name].Description)
	}
	return out
}

// Nature is what is known of a call before it acts; known is false when there is no such tool. An input that does not fit has the nature
// of the tool's furthest call.
func (r *Registry) Nature(call Call) (n policy.Nature, known bool) {
	t, ok := r.tools[call.Tool]
	if !ok {
		return n, false
	}
	if n, ok := t.Tool.(Natured); ok && t.input.check(call) == nil {
		return n.Nature(call), true
	}
	return t.nature(), true
}

// nature is that of the furthest call of a tool.
func (d Description) nature() policy.Nature {
	n := policy.Nature{Authority: policy.Act, Reversible: d.Undoable, Verifiable: d.Verifiable}
	switch d.Effect {
	case None:
		return policy.Nature{Authority: policy.Inform, Affects: policy.Self, Reversible: true, Verifiable: true}
	case Local:
		n.Affects = policy.Workspace
	default:
		n.Affects = policy.External
	}
	return n
}

// Run does call, or returns what it did before under the same key. How it ended is in the outcome, a failure too; an error says that
// its end is not known here: the caller gave up, or the records do not work. Then Run or Check with the same key is the way on.
func (r *Registry) Run(ctx context.Context, call Call) (Outcome, error) {
	t, failure := r.find(call)
	if failure != nil {
		return Outcome{Failure: failure}, nil
	}
	if t.Effect == None {
		return end(t.Do(ctx, call, nil))
	}
	defer r.keys.lock(call.Key)()
	record, found, err := r.records.Record(ctx, call.Key)
	if err != nil {
		return Outcome{}, fmt.Errorf("%s: look up the call %s: %w", call.Tool, call.Key, err)
	}
	if !found {
		return r.act(ctx, t, call)
	}
	if failure := sameCall(record, call); failure != nil {
		return Outcome{Failure: failure}, nil
	}
	if record.Outcome != nil {
		return *record.Outcome, nil
	}
	return r.goOn(ctx, t, call, record)
}

// Check says whether a call had its effect, after a crash, by its record and by a look at the world. It changes nothing.
func (r *Registry) Check(ctx context.Context, call Call) (Checked, error) {
	t, failure := r.find(call)
	if failure != nil {
		return Checked{State: NotDone, Why: failure.Message}, nil
	}
	if t.Effect == None {
		return Checked{State: NotDone, Why: call.Tool + " has no effect; it can be called again"}, nil
	}
	record, found, err := r.records.Record(ctx, call.Key)
	if err != nil {
		return Checked{}, fmt.Errorf("%s: look up the call %s: %w", call.Tool, call.Key, err)
	}
	switch failure := sameCall(record, call); {
	case !found:
		return Checked{State: NotDone, Why: "the call had not begun"}, nil
	case failure != nil:
		return Checked{State: Unknown, Why: failure.Message}, nil
	case record.Outcome != nil:
		return Checked{State: Done, Outcome: record.Outcome, Why: "the call had ended, and how was recorded"}, nil
	}
	return r.look(ctx, t, call, record)
}

// goOn takes up a call that had begun and whose end nobody heard of.
func (r *Registry) goOn(ctx context.Context, t registered, call Call, record Record) (Outcome, error) {
	checked, err := r.look(ctx, t, call, record)
	if err != nil {
		return Outcome{}, err
	}
	switch checked.State {
	case Done:
		record.Outcome = checked.Outcome
		return *record.Outcome, r.save(ctx, record)
	case NotDone:
		return r.act(ctx, t, call)
	default:
		f := failed(EffectUnsure, "%s: the call had begun before an interruption and may have been done: %s", call.Tool, checked.Why)
		return Outcome{Before: record.Before, Failure: f.next(t.Verify, "then say whether it was done; it is not done again by itself")}, nil
	}
}

func (r *Registry) look(ctx context.Context, t registered, call Call, record Record) (Checked, error) {
	checked, err := t.Check(ctx, call, record.Before)
	if f, ok := asFailure(err); ok {
		return Checked{State: Unknown, Why: f.Message}, nil
	}
	if err != nil {
		return Checked{}, fmt.Errorf("%s: check the call %s: %w", call.Tool, call.Key, err)
	}
	if checked.Outcome != nil {
		checked.Outcome.Before = record.Before
	}
	return checked, nil
}

// act records what is there, does the call, and records what came of it.
func (r *Registry) act(ctx context.Context, t registered, call Call) (Outcome, error) {
	record := Record{Key: call.Key, Tool: call.Tool, Input: digest(call.Input)}
	before, err := t.Before(ctx, call)
	if err != nil {
		return end(Outcome{}, err) // nothing was begun, so there is nothing to record
	}
	record.Before = before
	if err := r.save(ctx, record); err != nil {
		return Outcome{}, err
	}
	out, err := end(t.Do(ctx, call, before))
	if err != nil {
		return Outcome{}, err
	}
	out.Before = before
	if out.Failure != nil && out.Failure.Kind == EffectUnsure {
		return out, nil // not an end: Check looks again
	}
	record.Outcome = &out
	return out, r.save(context.WithoutCancel(ctx), record)
}

func (r *Registry) save(ctx context.Context, record Record) error {
	if err := r.records.SaveRecord(ctx, record); err != nil {
		return fmt.Errorf("%s: record the call %s: %w", record.Tool, record.Key, err)
	}
	return nil
}

// find returns the tool of a call whose input is right.
func (r *Registry) find(call Call) (registered, *Failure) {
	t, ok := r.tools[call.Tool]
	if !ok {
		return t, failed(UnknownTool, "there is no tool %q", call.Tool).
			next("use one of " + strings.Join(slices.Sorted(maps.Keys(r.tools)), ", "))
	}
	if call.Key == "" && t.Effect != None {
		return t, failed(InvalidInput, "%s: the call has no key", call.Tool)
	}
	return t, t.input.check(call)
}

// sameCall refuses a key that was used for something else.
func sameCall(record Record, call Call) *Failure {
	if record.Key == "" || (record.Tool == call.Tool && record.Input == digest(call.Input)) {
		return nil
	}
	return failed(Conflict, "%s: the key %s was used for another call, of %s", call.Tool, call.Key, record.Tool).
		next("start the step again; each call needs its own key")
}

// end makes a failure part of the outcome.
func end(out Outcome, err error) (Outcome, error) {
	if f, ok := asFailure(err); ok {
		out.Failure = f
		return out, nil
	}
	return out, err
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
