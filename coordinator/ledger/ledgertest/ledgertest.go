// Package ledgertest is the suite that every ledger.Store passes.
package ledgertest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// OpenFunc opens the store kept at place, a folder of the test's own; a new one where there is none.
type OpenFunc func(t *testing.T, place string) ledger.Store

// Run holds a Store to its contract.
func Run(t *testing.T, open OpenFunc) {
	for name, test := range map[string]func(*testing.T, ledger.Store){
		"events come back as written":                testRoundTrip,
		"events are paged":                           testPaging,
		"a wrong seq writes nothing":                 testWrongSeq,
		"what is not JSON is refused":                testNotJSON,
		"an event needs its run":                     testNoRow,
		"runs are listed and filtered":               testRuns,
		"a key belongs to one run":                   testKey,
		"values are set, listed and removed":         testMeta,
		"what is learned is replaced and removed":    testLearned,
		"the newest decisions of a step are kept":    testDecisions,
		"incidents come newest first":                testIncidents,
		"artifacts of every size":                    testArtifacts,
		"artifacts inside a commit":                  testBodies,
		"the reader's error is the caller's":         testFailingReader,
		"no such artifact":                           testNoArtifact,
		"a cancelled caller writes nothing":          testCancelled,
		"many writers and readers":                   testConcurrent,
		"verify counts and finds nothing":            testVerify,
		"a closed store says so":                     testClosed,
		"events are chained":                         testHead,
		"events are read by number":                  testEventsAt,
		"a part of an artifact is read":              testReadAt,
		"accepted results, newest first":             testAccepted,
		"schedules are put, listed and removed":      testSchedules,
		"calls of tools are kept by their key":       testToolCalls,
		"pruning keeps the facts":                    testPrune,
		"pruning keeps what others name":             testPruneKeeps,
		"pruning goes by age":                        testPruneByAge,
		"an export is not pruned":                    testPruneDuringExport,
		"what is not exported":                       testExportRefused,
		"nothing is shared with the caller's memory": testOwnMemory,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir())
			defer closeStore(t, s)
			test(t, s)
		})
	}
	t.Run("all is there after reopening", func(t *testing.T) { testReopen(t, open) })
	t.Run("an export is imported", func(t *testing.T) { testExport(t, open) })
	t.Run("an import leaves others alone", func(t *testing.T) { testImportClashes(t, open) })
	t.Run("a backup opens as the original", func(t *testing.T) { testBackup(t, open) })
}

// At is the fixed time from which the suite's events count.
var At = time.Date(2026, 11, 29, 23, 59, 59, 123456789, time.UTC)

// Story returns the commit of events first to last of run id, with its row in the given state.
func Story(id, state string, first, last int64) ledger.Commit {
	c := ledger.Commit{Runs: []ledger.RunRow{{ID: id, Workflow: "map", State: state, Created: At}}}
	for seq := first; seq <= last; seq++ {
		payload, err := json.Marshal(map[string]any{"run": id, "seq": seq})
		if err != nil {
			panic(err) // a string and a number
		}
		c.Events = append(c.Events, ledger.Event{
			RunID: id, Seq: seq, Time: At.Add(time.Duration(seq)), Kind: "step.succeeded", Payload: payload,
		})
	}
	return c
}

func closeStore(t *testing.T, s ledger.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func appendOK(t *testing.T, s ledger.Store, c ledger.Commit) {
	t.Helper()
	if err := s.Append(t.Context(), c); err != nil {
		t.Fatalf("append: %v", err)
	}
}

func events(t *testing.T, s ledger.Store, id string) []ledger.Event {
	t.Helper()
	es, err := s.Events(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatalf("events of %s: %v", id, err)
	}
	return es
}

func runs(t *testing.T, s ledger.Store, f ledger.RunFilter) []ledger.RunRow {
	t.Helper()
	rs, err := s.Runs(t.Context(), f)
	if err != nil {
		t.Fatalf("runs: %v", err)
	}
	return rs
}

func read(t *testing.T, s ledger.Store, sha string) []byte {
	t.Helper()
	r, a, err := s.OpenArtifact(t.Context(), sha)
	if err != nil {
		t.Fatalf("open artifact %s: %v", sha, err)
	}
	b, err := io.ReadAll(r)
	if err := r.Close(); err != nil {
		t.Errorf("close artifact: %v", err)
	}
	if err != nil || int64(len(b)) != a.Size {
		t.Fatalf("artifact %s: %d bytes of %d, %v", sha, len(b), a.Size, err)
	}
	return b
}

func wantCode(t *testing.T, err error, want apierr.Code) {
	t.Helper()
	if got := apierr.CodeOf(err); got != want {
		t.Fatalf("code %q, want %q: %v", got, want, err)
	}
}

func wantSame(t *testing.T, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("-want +got\n%s", d)
	}
}

// pattern returns n bytes that differ from those of any other seed.
func pattern(seed, n int) []byte {
	unit := []byte(json.RawMessage(ledger.Digest([]byte{byte(seed), byte(seed >> 8)})))
	return bytes.Repeat(unit, n/len(unit)+1)[:n]
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
