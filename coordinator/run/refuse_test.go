package run

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// What makes no sense is said when it is asked for, by the name of what is wrong.
func TestRequestsThatNobodyCouldCarryOut(t *testing.T) {
	for _, c := range []struct{ kind, body, want string }{
		{KindSleep, `{"seconds":1,"until":"2026-03-01T12:00:00Z"}`, "sleep: give seconds or until, not both"},
		{KindSleep, `{"until":"tomorrow"}`, `sleep: until is no time such as 2026-03-01T06:00:00+01:00: "tomorrow"`},
		{KindSleep, `{"seconds":1e12}`, "sleep.seconds is more than a hundred years"},
		{KindSleep, `{"seconds":-1}`, "sleep.seconds must be a number that is not negative"},
		{KindApprove, `{}`, "approve: no title is given"},
		{KindApprove, `{"on_timeout":"maybe","timeout_seconds":1,"title":"t"}`, "approve.on_timeout must be approved or rejected"},
		{KindQuestion, `{}`, "question: no text is given"},
		{KindQuestion, `{"on_timeout":1,"text":"t"}`, "question: timeout_seconds and on_timeout go together"},
		{KindTool, `{"input":{}}`, "tool: no tool is named"},
		{KindTool, `{"input":{},"name":"x","model":"m"}`, `tool has no field "model"`},
		{KindSpawn, `{"input":{}}`, "spawn: no workflow is named"},
		{KindSpawn, `{"detached":1,"workflow":"w"}`, "spawn.detached must be true or false, and is 1"},
		{KindPage, `{}`, "page: no step is named"},
		{KindPhase, `{}`, "phase: no pipeline is named"},
		{KindPhase, `{"phases":["a","a"],"pipeline":"p"}`, "phase: the phases need names that differ"},
		{KindPhase, `{"done":{"outcome":"fine","phase":"a"},"pipeline":"p"}`, "phase.done.outcome must be passed or sent_back or needs_human"},
		{KindPhase, `{"done":{"phase":"a"},"pipeline":"p"}`, `phase: the outcome is ""`},
		{KindPhase, `{"done":{"outcome":"passed","phase":"a","target":"b"},"pipeline":"p"}`, "phase: passed has no target"},
		{KindBatch, `{"items":{"lines":{"bytes":1,"name":"a","ref":"aa"}},"model":"m","prompt":"p"}`, "batch: the lines of the items are not known"},
		{KindBatch, `{"items":{"lines":{}},"model":"m","prompt":"p"}`, "batch: items must be an array or {lines: ref}"},
		{KindBatch, `{"items":{"rows":1},"model":"m","prompt":"p"}`, `batch.items has no field "rows"; it has lines`},
		{KindBatch, `{"items":["a"],"keys":["a","b"],"model":"m","prompt":"p"}`, "batch: 2 keys for 1 items"},
	} {
		tp := newTape(t)
		tp.ask(c.kind, c.body)
		f := tp.s.Requests[0].Failure
		if f == nil || f.Kind != KindBadRequest || !strings.HasPrefix(f.Message, c.want) {
			t.Errorf("%s %s: got %+v, want %q", c.kind, c.body, f, c.want)
		}
	}
}

// A command that makes no sense is refused with a reason and changes nothing; one that is too late is stale.
func TestCommandsThatMakeNoSense(t *testing.T) {
	tp := newTape(t)
	tp.ask(KindGenerate, `{"model":"m","prompt":"p"}`)
	tp.ask(KindSpawn, `{"input":{},"workflow":"w"}`)
	tp.ask(KindApprove, `{"title":"t"}`)
	tp.ask(KindTool, `{"input":{},"name":"x"}`)
	tp.ask(KindRead, `{"ref":"aa"}`)
	for _, c := range []struct {
		cmd  Command
		want string
	}{
		{Settle{Pos: 0}, "position 0 asks nobody"},
		{Settle{Pos: 9}, "position 9 asks nobody"},
		{Settle{Pos: 2, Outcome: "yes"}, "the answer does not fit"},
		{Spawned{Pos: 0, Run: "c"}, "position 0 spawns nothing"},
		{ChildEnded{Pos: 0}, "position 0 spawns nothing"},
		{ChildEnded{Pos: 1, End: ChildEnd{Run: "c"}}, "step 1 has not started the run c"},
		{Reuse{Pos: 4}, "step 4 takes nothing over"},
		{Reuse{Pos: 0, Item: 1}, "there is no step 0 with an item 1"},
		{Reuse{Pos: 9}, "there is no step 9"},
		{Resolve{Pos: 9}, "there is no step 9"},
		{Resolve{Pos: 3}, ErrStale.Error()},
		{Resume{}, ErrStale.Error()},
		{Fire{}, ErrStale.Error()},
		{Expire{}, ErrStale.Error()},
		{Rollback{Pipeline: "p", Phase: "a"}, `the run has no pipeline "p"`},
		{Yield{Checks: []CheckAnswer{{Pos: 9}}}, "there is no step 9"},
	} {
		seq := tp.s.Seq
		_, err := tp.try(c.cmd)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || tp.s.Seq != seq {
			t.Errorf("%T %+v: %v, want %q", c.cmd, c.cmd, err, c.want)
		}
	}
	tp.do(Spawned{Pos: 1, Run: "c"})
	if _, err := tp.try(ChildEnded{Pos: 1, End: ChildEnd{Run: "c", Status: Completed}, Report: Content{Value: json.RawMessage(`{`)}}); err == nil {
		t.Error("a report that is not JSON was taken")
	}
	tp.do(Settle{Pos: 2, Outcome: Rejected})
	if _, err := tp.try(Settle{Pos: 2, Outcome: Approved}); !errors.Is(err, ErrStale) {
		t.Errorf("a second answer: %v", err)
	}
}

// A rollback lets a tool end what it writes outside: to look away would not undo it.
func TestARollbackLeavesAWriteItsEnd(t *testing.T) {
	tp := newTape(t)
	tp.ask(KindPhase, `{"phases":["a","b"],"pipeline":"p"}`)
	tp.ask(KindPhase, `{"done":{"outcome":"passed","phase":"a"},"pipeline":"p"}`)
	tp.ask(KindTool, `{"input":{},"name":"mail.send"}`)
	tp.ask(KindTool, `{"input":{},"name":"file.read"}`)
	writing, reading := tp.use(2, true), tp.use(3, false)
	tp.do(Rollback{Pipeline: "p", Phase: "a", Reason: "r", By: "ada"})
	if !tp.s.Flying(writing) || tp.s.Flying(reading) {
		t.Errorf("flying: the write %v, the read %v", tp.s.Flying(writing), tp.s.Flying(reading))
	}
	tp.succeed(writing, `{"id":1}`)
	if got := tp.s.Requests[2].Status; got != StepSucceeded {
		t.Errorf("the write is %s", got)
	}
}

// What only who records a request can know of it ends its step with that reason.
func TestARequestIsRefusedByWhoRecordsIt(t *testing.T) {
	tp := newTape(t)
	body := json.RawMessage(`{"items":{"lines":{"bytes":1,"name":"a","ref":"aa"}},"model":"m","prompt":"p"}`)
	tp.do(Yield{Requests: []Request{{Pos: 0, Kind: KindBatch, Body: body, Refused: "aa was pruned"}}})
	if f := tp.s.Requests[0].Failure; f == nil || f.Kind != KindBadRequest || f.Message != "aa was pruned" {
		t.Errorf("it failed with %+v", f)
	}
}

// A parent is no more real than what it was given.
func TestAParentOfAStandInsResultIsMarked(t *testing.T) {
	for _, simulated := range []bool{true, false} {
		tp := newTape(t)
		tp.ask(KindSpawn, `{"input":{},"workflow":"w"}`)
		tp.do(Spawned{Pos: 0, Run: "c"})
		tp.do(ChildEnded{Pos: 0, End: ChildEnd{Run: "c", Status: Completed, Simulated: simulated}, Report: Content{Value: json.RawMessage(`{}`)}})
		if tp.s.Simulated != simulated {
			t.Errorf("after a child that is simulated: %v, the parent is: %v", simulated, tp.s.Simulated)
		}
	}
}
