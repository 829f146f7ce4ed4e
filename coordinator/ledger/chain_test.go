package ledger_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger/ledgertest"
)

const unlock = "DROP TRIGGER event_is_never_changed; DROP TRIGGER event_is_never_removed; PRAGMA foreign_keys = OFF; "

// Whoever can write the file can undo the triggers. What they then change still shows.
func TestVerifyNamesTheFirstBrokenLink(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		want   []string // a problem each
	}{
		"one byte of a payload": {`UPDATE event SET payload = replace(payload, '"seq":7', '"seq":8') WHERE run_id = 'r1' AND seq = 7`,
			[]string{"run r1: event 7 is not what was written"}},
		"a space in a payload": {`UPDATE event SET payload = replace(payload, '"seq":7', '"seq": 7') WHERE run_id = 'r1' AND seq = 7`,
			[]string{"run r1: event 7 is not what was written"}},
		"a time":                {`UPDATE event SET time = '2026-11-29T23:59:59.123456999Z' WHERE run_id = 'r1' AND seq = 9`, []string{"run r1: event 9 is not what was written"}},
		"a kind, and its hash":  {`UPDATE event SET kind = 'step.failed', hash = zeroblob(32) WHERE run_id = 'r1' AND seq = 3`, []string{"run r1: event 3 is not what was written"}},
		"no hash":               {`UPDATE event SET hash = NULL WHERE run_id = 'r1' AND seq = 3`, []string{"run r1: event 3 is not what was written"}},
		"two changes, one told": {`UPDATE event SET kind = 'x' WHERE run_id = 'r1' AND seq IN (3, 5)`, []string{"run r1: event 3 is not what was written"}},
		"two events swapped": {`UPDATE event SET seq = 1000 WHERE run_id = 'r1' AND seq = 4; UPDATE event SET seq = 4 WHERE run_id = 'r1' AND seq = 6;
			UPDATE event SET seq = 6 WHERE run_id = 'r1' AND seq = 1000`, []string{"run r1: event 4 is not what was written"}},
		"an event of another run put in its place": {`UPDATE event SET (payload, hash) = (SELECT payload, hash FROM event WHERE run_id = 'r2' AND seq = 4) WHERE run_id = 'r1' AND seq = 4`,
			[]string{"run r1: event 4 is not what was written"}},
		"one in the middle removed":                               {`DELETE FROM event WHERE run_id = 'r1' AND seq = 5`, []string{"database: events were removed", "run r1: event 5 is missing"}},
		"the first removed":                                       {`DELETE FROM event WHERE run_id = 'r1' AND seq = 1`, []string{"database: events were removed", "run r1: event 1 is missing: event 2 follows event 0"}},
		"the last of a run removed":                               {`DELETE FROM event WHERE run_id = 'r1' AND seq = 10`, []string{"database: events were removed", "run r1: event 10 is missing: the row of the run counts 10"}},
		"the last of all removed":                                 {`DELETE FROM event WHERE run_id = 'r2' AND seq = 10`, []string{"run r2: event 10 is missing: the row of the run counts 10"}},
		"all of a run's removed":                                  {`DELETE FROM event WHERE run_id = 'r2'`, []string{"run r2: event 1 is missing: the row of the run counts 10"}},
		"a run removed with its row":                              {`DELETE FROM event WHERE run_id = 'r1'; DELETE FROM run WHERE id = 'r1'`, []string{"database: events were removed"}},
		"the row's head changed":                                  {`UPDATE run SET head = zeroblob(32) WHERE id = 'r1'`, []string{"run r1: event 10 is not the last that was written"}},
		"one added at the end":                                    {`INSERT INTO event (run_id, seq, time, kind, payload, hash) VALUES ('r2', 11, '2026-11-29T23:59:59.123456999Z', 'k', '{}', zeroblob(32))`, []string{"run r2: event 11 is not what was written"}},
		"one added beyond the row's count, with a hash that fits": {forged(), []string{"run r2: event 11 was added: the row of the run counts 10"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			must(t, s.Append(t.Context(), ledgertest.Story("r1", "running", 1, 10)))
			must(t, s.Append(t.Context(), ledgertest.Story("r2", "running", 1, 10)))
			must(t, s.Close())
			execSQL(t, filepath.Join(dir, "ledger.db"), unlock+c.change)
			wantProblems(t, open(t, dir), c.want)
		})
	}
}

// forged adds event 11 to r2 with the hash that belongs to it, computed here as the README says.
func forged() string {
	hash := ""
	line := func(seq int64, at, kind, payload string) {
		hash = ledger.Digest([]byte(strings.Join([]string{hash, "r2", fmt.Sprint(seq), at, kind, payload}, "\n")))
	}
	for _, e := range ledgertest.Story("r2", "running", 1, 11).Events {
		line(e.Seq, e.Time.Format("2006-01-02T15:04:05.000000000Z"), e.Kind, string(e.Payload))
	}
	e := ledgertest.Story("r2", "running", 11, 11).Events[0]
	return fmt.Sprintf(`INSERT INTO event (run_id, seq, time, kind, payload, hash) VALUES ('r2', 11, '%s', '%s', '%s', x'%s')`,
		e.Time.Format("2006-01-02T15:04:05.000000000Z"), e.Kind, e.Payload, hash)
}

func wantProblems(t *testing.T, s ledger.Store, want []string) {
	t.Helper()
	rep, err := s.Verify(t.Context())
	must(t, err)
	for i, p := range rep.Problems {
		if text := p.Subject + ": " + p.Detail; i >= len(want) || !strings.HasPrefix(text, want[i]) {
			t.Errorf("problem %d: %s", i, text)
		}
	}
	if len(rep.Problems) != len(want) {
		t.Errorf("%d problems, want %d: %+v", len(rep.Problems), len(want), rep.Problems)
	}
}

func TestVerifyFindsAReplacedBody(t *testing.T) {
	t.Parallel()
	dir, small, _ := written(t)
	execSQL(t, filepath.Join(dir, "ledger.db"), `UPDATE artifact SET body = CAST(replace(CAST(body AS TEXT), 'sss', 'sst') AS BLOB) WHERE sha256 = '`+small+`'`)
	s := open(t, dir)
	wantProblems(t, s, []string{"artifact " + small + ": artifact " + small + " is not what was stored"})
}

// What a chain without a signature cannot show, said as a test so that nobody relies on more: whoever writes the file can cut the end
// off and move the head back. The head, written down elsewhere, tells.
func TestAForgerWhoMovesTheHeadIsFoundByANoteOfIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	must(t, s.Append(t.Context(), ledgertest.Story("r1", "running", 1, 10)))
	noted, err := s.Head(t.Context(), "r1")
	must(t, err)
	must(t, s.Close())
	execSQL(t, filepath.Join(dir, "ledger.db"), unlock+`DELETE FROM event WHERE seq = 10;
		UPDATE run SET events = 9, head = (SELECT hash FROM event WHERE seq = 9)`)
	s = open(t, dir)
	wantProblems(t, s, nil)
	if now, err := s.Head(t.Context(), "r1"); err != nil || now == noted || now.Seq != 9 {
		t.Errorf("the head is %+v, noted was %+v, %v", now, noted, err)
	}
}

func TestVerifyWhileOthersAppend(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	must(t, s.Append(t.Context(), ledgertest.Story("r1", "running", 1, 1)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for seq := int64(2); seq < 200; seq++ {
			if err := s.Append(t.Context(), ledgertest.Story("r1", "running", seq, seq)); err != nil {
				t.Errorf("append: %v", err)
				return
			}
		}
	}()
	for busy := true; busy; {
		select {
		case <-done:
			busy = false
		default:
		}
		wantProblems(t, s, nil)
	}
	es, err := s.Events(t.Context(), "r1", 198, 0)
	if err != nil || len(es) != 1 || !json.Valid(es[0].Payload) {
		t.Fatalf("%v, %v", es, err)
	}
}
