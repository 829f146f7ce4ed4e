package run

import (
	"encoding/json"
	"testing"
)

func TestSettle(t *testing.T) {
	tests := []struct {
		name   string
		play   func(*tape)
		value  string
		load   string
		reject string
	}{
		{name: "a value", play: func(tp *tape) {
			tp.ask(KindGenerate, `{"model":"m","prompt":"p","schema":{}}`)
			tp.succeed(tp.place(0, 0, "n1"), `{"x":1}`)
		}, value: `{"x":1}`},
		{name: "a text is a reference with facts", play: func(tp *tape) {
			tp.ask(KindGenerate, `{"label":"draft","model":"m","prompt":"p"}`)
			tp.do(Finish{AttemptID: tp.place(0, 0, "n1"), Result: Content{Ref: "ff", Bytes: 3, Text: true},
				Evidence: Evidence{Report: Report{Model: "m:8b", PromptTokens: 9, OutputTokens: 4, TotalNanos: 1500000000}}})
		}, value: `{"bytes":3,"facts":{"model":"m:8b","node":"n1","output_tokens":4,"prompt_tokens":9,"seconds":1.5,"simulated":false},"name":"draft","ref":"ff"}`},
		{name: "a large value is loaded", play: func(tp *tape) {
			tp.ask(KindPlan, `{"goal":"g","model":"m"}`)
			tp.do(Finish{AttemptID: tp.place(0, 0, "n1"), Result: Content{Ref: "ee", Bytes: 1 << 20}})
		}, load: "ee"},
		{name: "a read is loaded", play: func(tp *tape) {
			tp.ask(KindRead, `{"ref":"dd"}`)
			tp.do(Answer{Pos: 0, Result: Content{Ref: "dd", Text: true}})
		}, load: "dd"},
		{name: "a failure rejects", play: func(tp *tape) {
			tp.ask(KindGenerate, `{"model":"m","prompt":"p"}`)
			tp.fail(tp.place(0, 0, "n1"), "input_too_long", Never)
		}, reject: "input_too_long"},
		{name: "a batch resolves whatever failed", play: func(tp *tape) {
			tp.ask(KindBatch, `{"items":["a",{"bytes":3,"name":"b.md","ref":"ff"}],"model":"m","prompt":"{{item}}"}`)
			tp.fail(tp.place(0, 1, "n1"), "model_missing", Never)
			tp.succeed(tp.place(0, 0, "n1"), `1`)
		}, value: `{"coverage":0.5,"failed":1,"items":[{"index":0,"key":"0","status":"succeeded","value":1},{"failure":{"kind":"model_missing","message":"it was model_missing"},"index":1,"key":"b.md","status":"failed"}],"succeeded":1,"total":2}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tp := newTape(t)
			tt.play(tp)
			got, err := tp.s.Settle(0)
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Value) != tt.value {
				t.Errorf("value %s\nwant  %s", got.Value, tt.value)
			}
			if (got.Load != nil) != (tt.load != "") || got.Load != nil && got.Load.Ref != tt.load {
				t.Errorf("load %+v, want %q", got.Load, tt.load)
			}
			if (got.Failure != nil) != (tt.reject != "") || got.Failure != nil && got.Failure.Kind != tt.reject {
				t.Errorf("failure %+v, want %q", got.Failure, tt.reject)
			}
		})
	}
}

func TestAnOutputOnAFailedStepIsIncomplete(t *testing.T) {
	tp := newTape(t)
	tp.ask(KindGenerate, `{"model":"m","prompt":"p"}`)
	tp.succeed(tp.place(0, 0, "n1"), `1`)
	tp.ask(KindOutput, `{"name":"o","sources":[0,9],"value":1}`)
	tp.returns()
	tp.want(Incomplete)
	if got := tp.s.End.Shortfalls; len(got) != 1 || got[0] != `output "o" rests on step 9, which did not succeed` {
		t.Errorf("the shortfalls are %q", got)
	}
}

func TestARunWaitsForWhatItsScriptDidNotAwait(t *testing.T) {
	tp := newTape(t)
	tp.ask(KindGenerate, `{"model":"m","prompt":"p"}`)
	id := tp.place(0, 0, "n1")
	tp.returns()
	tp.want(Running)
	tp.succeed(id, `1`)
	tp.want(Completed)
}

func TestAReadThatNobodyAwaitsIsSkipped(t *testing.T) {
	tp := newTape(t)
	tp.ask(KindRead, `{"ref":"dd"}`)
	tp.returns()
	tp.want(Completed)
	if got := tp.s.Requests[0].Status; got != StepSkipped {
		t.Errorf("the read is %s", got)
	}
}

func TestDecodeRefusesWhatItDoesNotKnow(t *testing.T) {
	if _, err := Decode(3, birth, "step.teleported", json.RawMessage(`{}`)); err == nil {
		t.Error("an event of a newer version was skipped")
	}
	if e, err := Decode(3, birth, "run.started", json.RawMessage(`{"added_later":1}`)); err != nil || e.Data.Kind() != "run.started" {
		t.Errorf("a field of a newer version was refused: %v", err)
	}
	for kind, empty := range kinds {
		if got := empty().Kind(); got != kind {
			t.Errorf("the kind %q makes a payload of kind %q", kind, got)
		}
	}
}
