package script

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// testdata/interface1.js was bundled by the first version and is never made again: runs that wait for a person since then
// go on with it.
func TestAProgramOfTheFirstInterfaceStillRuns(t *testing.T) {
	code, err := os.ReadFile("testdata/interface1.js")
	if err != nil {
		t.Fatal(err)
	}
	onBoth(t, func(t *testing.T, host Host) {
		s, y, err := host.Start(context.Background(), Start{Program: Program{Name: "flow.ts", Code: code}, Seed: 7, Clock: anchor,
			Input: json.RawMessage(`{"files":[{"bytes":1,"name":"a.md","ref":"aa"}]}`)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r := &run{t, s, y, anchor}
		want(t, lines(y.Requests), `
log {"level":"info","text":"start 63cb044c-e698-453a-b3d3-3fda77cb53fc"}
batch {"items":[{"bytes":1,"name":"a.md","ref":"aa"}],"model":"m","prompt":"{{item}}"}`)
		want(t, lines(r.value(1, `{"coverage":1,"failed":0,"items":[{"bytes":2,"index":0,"key":"a.md","ref":"r","status":"succeeded"}],"succeeded":1,"total":1}`).Requests), `read {"ref":"r"}`)
		want(t, lines(r.value(2, `"text"`).Requests), `
output {"name":"texts","sources":[2],"value":["text"]}
generate {"item":["text"],"model":"m","prompt":"p"}`)
		want(t, string(r.value(4, `{"bytes":1,"facts":{},"name":"n","ref":"s"}`).End.Value), `{"bytes":1,"name":"n","ref":"s"}`)
	})
}

// testdata/interface2.js was bundled by the last version whose programs take and give JSON.
func TestAProgramOfTheSecondInterfaceStillRuns(t *testing.T) {
	code, err := os.ReadFile("testdata/interface2.js")
	if err != nil {
		t.Fatal(err)
	}
	onBoth(t, func(t *testing.T, host Host) {
		s, y, err := host.Start(context.Background(), Start{Program: Program{Name: "flow.ts", Code: code}, Seed: 7, Clock: anchor,
			Input: json.RawMessage(`{"n":[12345678901234567890]}`)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r := &run{t, s, y, anchor}
		want(t, lines(y.Requests), `
log {"level":"info","text":"start 63cb044c-e698-453a-b3d3-3fda77cb53fc"}
generate {"check":true,"item":[12345678901234567890],"model":"m","prompt":"p","schema":{}}`)
		value := `{"ok":false,"n":-12345678901234567890}`
		if got := r.deliver(Delivery{Pos: 1, Check: true, Value: json.RawMessage(value)}).Checks; len(got) != 1 || got[0].Passed || strings.Join(got[0].Reasons, "") != "not ok" {
			t.Errorf("checks = %+v", got)
		}
		want(t, lines(r.value(1, value).Requests), `
output {"name":"n","sources":[1],"value":{"n":-12345678901234567890,"ok":false}}
approve {"show":[{"at":"1970-01-01T00:00:00.000Z"}],"title":"go on?"}`)
		want(t, lines(r.value(3, `{"outcome":"approved"}`).Requests), `read {"ref":"aa"}`)
		last := r.deliver(Delivery{Pos: 4, Err: &CallError{Kind: "missing_artifact", Message: "no", Step: 4}})
		if last.End == nil || string(last.End.Value) != `["missing_artifact",4,"approved"]` {
			t.Errorf("end = %+v", last.End)
		}
	})
}

// testdata/interface3.js was bundled by the last library that gave a check over lines no item: it goes on so, whatever it is given.
func TestAProgramThatIsGivenNoLinesStillRuns(t *testing.T) {
	code, err := os.ReadFile("testdata/interface3.js")
	if err != nil {
		t.Fatal(err)
	}
	onBoth(t, func(t *testing.T, host Host) {
		s, y, err := host.Start(context.Background(), Start{Program: Program{Name: "flow.ts", Code: code}, Seed: 7, Clock: anchor,
			Input: json.RawMessage(`{"file":{"bytes":9,"name":"a.jsonl","ref":"aa"}}`)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r := &run{t, s, y, anchor}
		want(t, lines(y.Requests), `batch {"check":true,"items":{"lines":{"bytes":9,"name":"a.jsonl","ref":"aa"}},"model":"m","prompt":"{{item}}","schema":{}}`)
		got := r.deliver(Delivery{Pos: 0, Item: 4, Check: true, Value: json.RawMessage(`4`), About: json.RawMessage(`{"n":4}`)})
		want(t, answers(got), `{"pos":0,"item":4,"passed":true}`)
		want(t, lines(r.value(0, `{"coverage":1,"failed":0,"handle":0,"succeeded":5,"total":5}`).Requests), `generate {"check":true,"item":{"n":2},"model":"m","prompt":"p","schema":{}}`)
		want(t, answers(r.ask(1, 0, `{"n":2}`)), `{"pos":1,"passed":true}`)
		want(t, string(r.value(1, `{"n":2}`).End.Value), `[5,{"n":2}]`)
	})
}

// A run of a later version is not broken: it waits for a loopkeeper that knows its interface.
func TestAProgramOfALaterInterfaceIsNotRun(t *testing.T) {
	p := bundled(t, `export default () => 1`)
	p.Code = []byte(strings.Replace(string(p.Code), "version: 3", "version: 4", 1))
	if f := failedProgram(t, NewHost(Limits{}), p); f.Kind != Incompatible || !strings.Contains(f.Message, "version 4") {
		t.Errorf("failure = %v", f)
	}
}

// The file of a running coordinator is replaced by another version, whose children speak otherwise.
func TestAChildOfAnotherVersionIsNotTalkedTo(t *testing.T) {
	script := filepath.Join(t.TempDir(), "child")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nread line\necho '{\"yield\":{}}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("left out: there is no shell to play a child of another version")
	}
	_, _, err := NewChildHost(ChildOptions{Command: []string{script}}).Start(context.Background(), Start{})
	var e *apierr.Error
	if !errors.As(err, &e) || e.Code != apierr.IncompatibleVersion || len(e.Next) == 0 {
		t.Errorf("error = %v", err)
	}
	c := &child{}
	if a := c.answer(question{Version: protocolVersion + 1, Limits: &Limits{}, Start: &Start{}}); !strings.Contains(a.Error, "another version") {
		t.Errorf("a child answered a host of another version with %+v", a)
	}
}
