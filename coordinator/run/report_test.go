package run

import (
	"encoding/json"
	"fmt"
	"testing"
)

// large is a run with a batch over n lines, of which every tenth fails. It returns the events of results by their number.
func large(t testing.TB, n int) (*State, map[int64]Payload) {
	t.Helper()
	s, now := &State{}, birth
	results := map[int64]Payload{}
	do := func(cmd Command) {
		events, err := Execute(s, cmd, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if _, lean := t.(discard); lean {
				break
			}
			if _, ok := ResultOf(e.Data); ok {
				results[e.Seq] = e.Data
			}
		}
	}
	do(Create{Created{ID: "k3f9", Script: "abc"}})
	do(Start{})
	do(Yield{Requests: []Request{{Kind: KindBatch, Lines: &Lines{Count: n, Index: "ee"},
		Body: json.RawMessage(`{"items":{"lines":{"bytes":40,"name":"data.jsonl","ref":"dd"}},"model":"small","prompt":"{{item}}"}`)}}})
	for i := range n {
		id := AttemptID{Item: i, Phase: Work, Number: 1}
		do(Place{AttemptID: id, Node: "n1", Model: "small:8b", Context: 4096, Why: "it is loaded there"})
		f := Finish{AttemptID: id, Result: Content{Value: json.RawMessage(fmt.Sprintf(`{"of":%d}`, i))},
			Evidence: Evidence{Node: "n1", Report: Report{Model: "small:8b", PromptTokens: 10, OutputTokens: 5}}}
		if i%10 == 9 {
			f.Failure = &Failure{Kind: "input_too_long", Message: "too long", Advice: Never}
		}
		do(f)
	}
	return s, results
}

func (s *State) ask(t testing.TB, body string) Settled {
	t.Helper()
	pos := len(s.Requests)
	if _, err := Execute(s, Yield{Requests: []Request{{Pos: pos, Kind: KindPage, Body: json.RawMessage(body)}}}, birth); err != nil {
		t.Fatal(err)
	}
	got, err := s.Settle(pos)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestALargeBatchIsReadByPages(t *testing.T) {
	s, results := large(t, 2500)
	whole, err := s.Settle(0)
	if want := `{"coverage":0.9,"failed":250,"handle":0,"succeeded":2250,"total":2500}`; err != nil || string(whole.Value) != want {
		t.Fatalf("the batch is %s, %v, want %s", whole.Value, err, want)
	}
	for _, tt := range []struct{ body, want string }{
		{`{"count":2,"from":8,"step":0}`, `{"items":[{"index":8,"key":"data.jsonl:9","status":"succeeded","value":{"of":8}},` +
			`{"failure":{"kind":"input_too_long","message":"too long"},"index":9,"key":"data.jsonl:10","status":"failed"}],"next":10}`},
		{`{"count":1,"from":9,"only":"succeeded","step":0}`, `{"items":[{"index":10,"key":"data.jsonl:11","status":"succeeded","value":{"of":10}}],"next":11}`},
		{`{"count":1,"from":2490,"only":"failed","step":0}`, `{"items":[{"failure":{"kind":"input_too_long","message":"too long"},"index":2499,"key":"data.jsonl:2500","status":"failed"}],"next":null}`},
		{`{"from":2500,"step":0}`, `{"items":[],"next":null}`},
	} {
		got := s.ask(t, tt.body)
		if got.Page != nil {
			for i := range got.Page.Items {
				if item := &got.Page.Items[i]; item.Event != 0 {
					c, ok := ResultOf(results[item.Event])
					if !ok {
						t.Fatalf("event %d has no result", item.Event)
					}
					item.Fill(c)
				}
			}
			got.Value, err = got.Page.Value()
		}
		if err != nil || string(got.Value) != tt.want {
			t.Errorf("%s: %s, %v\nwant %s", tt.body, got.Value, err, tt.want)
		}
	}
	seen, from := 0, 0
	for next := &from; next != nil; {
		p := s.ask(t, fmt.Sprintf(`{"from":%d,"step":0}`, *next)).Page
		seen += len(p.Items)
		next = p.next
	}
	if seen != 2500 {
		t.Errorf("the pages have %d items", seen)
	}
}

// A batch that an earlier version recorded is delivered whole, as its script was given it then.
func TestALargeBatchOfTheFirstVersionHasNoHandle(t *testing.T) {
	items, _ := json.Marshal(make([]int, PageLimit+1))
	s := &State{}
	for i, p := range []Payload{&Created{ID: "k3f9"}, &Started{}, &Requested{Op: KindBatch, Body: json.RawMessage(`{"items":` + string(items) + `,"model":"m","prompt":"p"}`)}} {
		if err := Apply(s, Event{Seq: int64(i + 1), Time: birth, Data: p}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range s.Requests[0].Items {
		if _, err := Execute(s, Reuse{Item: i, Result: Content{Value: json.RawMessage(`1`)}}, birth); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Settle(0); err != nil || got.Page == nil || len(got.Page.Items) != PageLimit+1 {
		t.Errorf("it delivers %+v, %v", got, err)
	}
}

func TestACheckIsGivenItsValueAgain(t *testing.T) {
	tp := newTape(t)
	tp.ask(KindGenerate, `{"check":true,"label":"draft","model":"m","prompt":"p"}`)
	for i, ref := range []string{"f1", "f2"} {
		tp.do(Finish{AttemptID: tp.place(0, 0, "n1"), Result: Content{Ref: ref, Bytes: 3, Text: true}, Evidence: Evidence{Report: Report{Model: "m:8b"}}})
		tp.check(0, 0, i == 1, "no")
	}
	if n := len(tp.s.Deliveries); n != 3 { // two checks and the step's end
		t.Fatalf("%d deliveries", n)
	}
	for i, ref := range []string{"f1", "f2"} {
		d := tp.s.Deliveries[i]
		got, err := tp.s.SettleCheck(d)
		if err == nil && got.Event != 0 { // the item has moved on: the value is in its event
			got, err = tp.s.CheckValue(d, tp.events[got.Event-1].Data)
		}
		want := `{"bytes":3,"facts":{"model":"m:8b","node":"n1","output_tokens":0,"prompt_tokens":0,"seconds":0,"simulated":false},"name":"draft","ref":"` + ref + `"}`
		if err != nil || string(got.Value) != want {
			t.Errorf("check %d is given %s, %v\nwant %s", i, got.Value, err, want)
		}
		if !d.Given.Equal(Checked{Passed: i == 1, Reasons: []string{"no"}}) || d.Given.Equal(Checked{Passed: i == 1}) {
			t.Errorf("check %d was answered %+v", i, d.Given)
		}
	}
}
