package script

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"
)

var anchor = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// bundled bundles a script in one text.
func bundled(t *testing.T, text string) Program {
	t.Helper()
	p, err := BundleText("flow.ts", text)
	if err != nil {
		t.Fatalf("bundle: %v", err)
	}
	return p
}

// run is one session with the steps a test takes.
type run struct {
	t       *testing.T
	session Session
	last    Yield
	clock   time.Time
}

func started(t *testing.T, host Host, text, input string) *run {
	t.Helper()
	s, y, err := host.Start(context.Background(), Start{Program: bundled(t, text), Input: json.RawMessage(input), Seed: 7, Clock: anchor})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &run{t, s, y, anchor}
}

func (r *run) deliver(d Delivery) Yield {
	r.t.Helper()
	r.clock = r.clock.Add(time.Second)
	d.Time = r.clock
	y, err := r.session.Deliver(context.Background(), d)
	if err != nil {
		r.t.Fatalf("deliver %d: %v", d.Pos, err)
	}
	r.last = y
	return y
}

func (r *run) value(pos int, value string) Yield {
	r.t.Helper()
	return r.deliver(Delivery{Pos: pos, Value: json.RawMessage(value)})
}

func (r *run) fail(pos int, kind, message string) Yield {
	r.t.Helper()
	return r.deliver(Delivery{Pos: pos, Err: &CallError{Kind: kind, Message: message, Step: pos}})
}

// lines shows requests as "pos kind body", one a line.
func lines(requests []Request) string {
	text := ""
	for _, r := range requests {
		text += r.Kind + " " + string(r.Body) + "\n"
	}
	return text
}

// hosts are the two ways to run a script; what holds for a script holds for both.
func hosts(limits Limits) map[string]Host {
	return map[string]Host{
		"in process": NewHost(limits),
		"child":      NewChildHost(ChildOptions{Command: []string{os.Args[0], childArgument}, Limits: limits}),
	}
}

// onBoth runs a test for each host.
func onBoth(t *testing.T, test func(t *testing.T, host Host)) {
	for name, host := range hosts(Limits{}) {
		t.Run(name, func(t *testing.T) { test(t, host) })
	}
}

func failedProgram(t *testing.T, host Host, p Program) *Failure {
	t.Helper()
	s, y, err := host.Start(context.Background(), Start{Program: p, Clock: anchor})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	defer s.Close()
	if y.End == nil || y.End.Failure == nil {
		t.Fatalf("the script did not fail: %+v", y.End)
	}
	return y.End.Failure
}
