package run

import (
	"encoding/json"
	"testing"
)

const base = `{"items":["a","b","c"],"model":"m","prompt":"{{item}}","retry":{"attempts":1}}`

// before is a run that a fork or a retry is based on: one item of three failed, one approval was given.
func before(t *testing.T) *tape {
	tp := newTape(t)
	tp.ask(KindBatch, base)
	tp.succeed(tp.place(0, 0, "n1"), `1`)
	tp.fail(tp.place(0, 1, "n1"), "empty_turn", Changed)
	tp.succeed(tp.place(0, 2, "n1"), `3`)
	tp.ask(KindApprove, `{"title":"t"}`)
	tp.do(Settle{Pos: 1, Outcome: Approved, By: "ada"})
	tp.ask(KindSpawn, `{"input":{},"workflow":"w"}`)
	tp.do(Spawned{Pos: 2, Run: "c1"})
	tp.do(ChildEnded{Pos: 2, End: ChildEnd{Run: "c1", Status: Incomplete}, Report: Content{Value: json.RawMessage(`{}`)}})
	tp.ask(KindLog, `{"level":"info","text":"x"}`)
	tp.ask(KindGenerate, `{"model":"m","prompt":"old"}`)
	tp.succeed(tp.place(4, 0, "n1"), `"old"`)
	tp.returns()
	return tp
}

func TestAForkTakesOverWhatIsTheSame(t *testing.T) {
	old := before(t)
	for _, tt := range []struct {
		name   string
		before int
		kind   string
		body   string
		pos    int
		want   int
	}{
		{name: "items that succeeded", kind: KindBatch, body: base, want: 2},
		{name: "nothing when the request differs", kind: KindBatch, body: `{"items":["a","b","x"],"model":"m","prompt":"{{item}}"}`},
		{name: "an answer", kind: KindApprove, body: `{"title":"t"}`, pos: 1, want: 1},
		{name: "nothing from the fork's position on", before: 1, kind: KindApprove, body: `{"title":"t"}`, pos: 1},
		{name: "no child that did not complete", kind: KindSpawn, body: `{"input":{},"workflow":"w"}`, pos: 2},
		{name: "no note", kind: KindGenerate, body: `{"model":"m","prompt":"p"}`, pos: 3},
		{name: "nothing beyond the base's end", kind: KindGenerate, body: `{"model":"m","prompt":"p"}`, pos: 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tp := newTapeOf(t, Created{Base: &Base{Run: "k3f9", Before: tt.before, Failed: true}})
			for range tt.pos {
				tp.ask(KindLog, `{"level":"info","text":"x"}`)
			}
			tp.ask(tt.kind, tt.body)
			got := tp.s.Adoptions(old.s, tt.pos)
			if len(got) != tt.want {
				t.Fatalf("it takes over %+v, want %d", got, tt.want)
			}
			for _, a := range got {
				tp.do(a.Reuse)
			}
			if tt.kind == KindBatch && tt.want > 0 {
				tp.succeed(tp.place(0, 1, "n1"), `2`)
				if v, err := tp.s.Settle(0); err != nil || string(v.Value) != `{"coverage":1,"failed":0,"items":[{"index":0,"key":"0","status":"succeeded","value":1},`+
					`{"index":1,"key":"1","status":"succeeded","value":2},{"index":2,"key":"2","status":"succeeded","value":3}],"succeeded":3,"total":3}` {
					t.Errorf("the batch is %s, %v", v.Value, err)
				}
			}
			if tt.want > 0 && !tp.s.Requests[tt.pos].Status.Ended() {
				t.Errorf("the step is %s", tp.s.Requests[tt.pos].Status)
			}
		})
	}
}

// Whether the base's mail was sent is unknown: the retry asks, and does not send it again.
func TestARetryDoubtsAWriteThatWasInterrupted(t *testing.T) {
	old := newTape(t)
	old.ask(KindTool, `{"input":{},"name":"mail.send"}`)
	old.use(0, true)
	old.do(Cancel{})
	tp := newTapeOf(t, Created{Base: &Base{Run: "k3f9", Failed: true}})
	tp.ask(KindTool, `{"input":{},"name":"mail.send"}`)
	got := tp.s.Adoptions(old.s, 0)
	if len(got) != 1 || !got[0].Doubt || !old.s.Requests[0].External {
		t.Fatalf("it takes over %+v", got)
	}
	tp.do(Doubt{Pos: 0, From: got[0].From})
	tp.want(Waiting)
	if tickets, _ := tp.s.ReadyTools(tp.now, 1); len(tickets) != 0 || tp.s.Requests[0].WaitingFor() != WaitHuman {
		t.Errorf("it is offered %+v", tickets)
	}
}
