package ledgertest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func testAccepted(t *testing.T, s ledger.Store) {
	appendOK(t, s, Story("r1", "running", 1, 1))
	result := func(n int) ledger.Accepted {
		return ledger.Accepted{Request: "q1", Model: "d1", RunID: "r1", Step: 3, Item: n, Time: At.Add(time.Duration(n)), Result: json.RawMessage(fmt.Sprint(n))}
	}
	const extra = 3
	var want []ledger.Accepted
	for n := range ledger.AcceptedKept + extra {
		c := ledger.Commit{Accepted: []ledger.Accepted{result(n)}}
		if n == 0 { // another request beside it
			other := result(0)
			other.Request = "q2"
			c.Accepted = append(c.Accepted, other)
		}
		appendOK(t, s, c)
		if n >= extra {
			want = append([]ledger.Accepted{result(n)}, want...)
		}
	}
	wantSame(t, accepted(t, s, "q1", 0), want)
	wantSame(t, accepted(t, s, "q1", 1), want[:1])
	wantSame(t, len(accepted(t, s, "q2", 0)), 1)
	wantSame(t, len(accepted(t, s, "q", 0)), 0)
	for name, spoil := range map[string]func(*ledger.Accepted){
		"no request": func(a *ledger.Accepted) { a.Request = "" },
		"no JSON":    func(a *ledger.Accepted) { a.Result = json.RawMessage("{") },
		"no digest":  func(a *ledger.Accepted) { a.Body = "abc" },
	} {
		bad := result(99)
		spoil(&bad)
		if err := s.Append(t.Context(), ledger.Commit{Accepted: []ledger.Accepted{bad}}); apierr.CodeOf(err) != apierr.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad := result(99)
	bad.RunID = "nobody"
	c := Story("r1", "running", 2, 2)
	c.Accepted = []ledger.Accepted{bad}
	if err := s.Append(t.Context(), c); err == nil {
		t.Error("a result of a run that is not there was taken")
	}
	wantSame(t, len(events(t, s, "r1")), 1) // with its event
}

func accepted(t *testing.T, s ledger.Store, request string, limit int) []ledger.Accepted {
	t.Helper()
	got, err := s.Accepted(t.Context(), request, limit)
	if err != nil {
		t.Fatalf("accepted results: %v", err)
	}
	return got
}

func testSchedules(t *testing.T, s ledger.Store) {
	nightly := ledger.Schedule{Name: "nightly", Updated: At, Value: json.RawMessage(`{"cron":"0 3 * * *","fired":1}`)}
	inbox := ledger.Schedule{Name: "inbox", Updated: At, Value: json.RawMessage(`{"folder":"/in"}`)}
	appendOK(t, s, ledger.Commit{Schedules: []ledger.Schedule{nightly, inbox}})
	nightly.Updated, nightly.Value = At.Add(time.Hour), json.RawMessage(`{"cron":"0 3 * * *","fired":2}`)
	c := Story("r1", "queued", 1, 1) // a firing and its run can be one commit
	c.Schedules = []ledger.Schedule{nightly}
	appendOK(t, s, c)
	wantSame(t, schedules(t, s), []ledger.Schedule{inbox, nightly})
	again := nightly
	again.Value = json.RawMessage(`{"cron":"0 3 * * *","fired":3}`)
	c.Schedules = []ledger.Schedule{again}
	wantCode(t, s.Append(t.Context(), c), apierr.Conflict) // its event is there: neither goes in
	wantSame(t, schedules(t, s), []ledger.Schedule{inbox, nightly})
	appendOK(t, s, ledger.Commit{Schedules: []ledger.Schedule{{Name: "inbox"}, {Name: "never"}}})
	wantSame(t, schedules(t, s), []ledger.Schedule{nightly})
	for _, bad := range []ledger.Schedule{{Value: json.RawMessage("{}")}, {Name: "x", Value: json.RawMessage("{")}} {
		wantCode(t, s.Append(t.Context(), ledger.Commit{Schedules: []ledger.Schedule{bad}}), apierr.InvalidArgument)
	}
}

func schedules(t *testing.T, s ledger.Store) []ledger.Schedule {
	t.Helper()
	got, err := s.Schedules(t.Context())
	if err != nil {
		t.Fatalf("schedules: %v", err)
	}
	return got
}
