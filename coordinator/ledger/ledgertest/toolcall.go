package ledgertest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func testToolCalls(t *testing.T, s ledger.Store) {
	call := func(key, value string) ledger.ToolCall {
		return ledger.ToolCall{Key: key, Updated: At, Value: json.RawMessage(value)}
	}
	want := func(key string, want ledger.ToolCall, there bool) {
		t.Helper()
		got, found, err := s.ToolCall(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, found, there)
		wantSame(t, got, want)
	}
	begun, other := call("r1/3/0/work/1", `{"tool":"file.write"}`), call("r1/3/0/work/10", `{"tool":"other"}`)
	appendOK(t, s, ledger.Commit{ToolCalls: []ledger.ToolCall{begun, other}})
	ended := begun
	ended.Updated, ended.Value = At.Add(time.Second), json.RawMessage(`{"outcome":{},"tool":"file.write"}`)
	want(begun.Key, begun, true)
	appendOK(t, s, ledger.Commit{ToolCalls: []ledger.ToolCall{ended}})
	want(begun.Key, ended, true)
	want(other.Key, other, true)
	want("r1/3/0/work/", ledger.ToolCall{}, false)
	for _, bad := range []ledger.ToolCall{call("", "{}"), call("k", "{")} {
		wantCode(t, s.Append(t.Context(), ledger.Commit{ToolCalls: []ledger.ToolCall{bad}}), apierr.InvalidArgument)
	}
}
