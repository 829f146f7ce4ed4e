package api

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// known returns the run that has a job's idempotency key, "" when there is none. It comes before every check: whoever sends
// a key again wants to hear of the run, whatever the fleet looks like by now. Conflict: the run did another job.
func (s *Server) known(ctx context.Context, job engine.Submission) (string, error) {
	if job.Key == "" {
		return "", nil
	}
	rows, err := s.o.Store.Runs(ctx, ledger.RunFilter{Key: job.Key, Limit: 1})
	if err != nil || len(rows) == 0 {
		return "", err
	}
	if err := s.sameJob(ctx, rows[0].ID, job); err != nil {
		return "", err
	}
	return rows[0].ID, nil
}

// sameJob refuses a job whose key belongs to a run that does something else: the results of that run are no answer to it.
func (s *Server) sameJob(ctx context.Context, id string, job engine.Submission) error {
	events, err := s.o.Store.Events(ctx, id, 0, 1)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return apierr.New(apierr.LedgerCorrupt, "run %s has no first event", id)
	}
	first, err := run.Decode(events[0].Seq, events[0].Time, events[0].Kind, events[0].Payload)
	if err != nil {
		return apierr.Wrap(err, apierr.LedgerTooNew, "read run %s", id)
	}
	pinned, ok := first.Data.(*run.Created)
	if !ok {
		return apierr.New(apierr.LedgerCorrupt, "run %s begins with %s", id, events[0].Kind)
	}
	if what := difference(*pinned, job); what != "" {
		return apierr.New(apierr.Conflict, "the key %q belongs to run %s, which does something else: %s", job.Key, id, what).
			WithNext("give this job another --key", "loopkeeper result "+id)
	}
	return nil
}

// difference says in what a job differs from what a run pinned, "" when in nothing. A built-in workflow stays the same one
// across versions of loopkeeper.
func difference(pinned run.Created, job engine.Submission) string {
	if pinned.Workflow != job.Workflow {
		return "its workflow is " + pinned.Workflow
	}
	if _, builtIn := workflows.Lookup(job.Workflow); !builtIn && pinned.Script != ledger.Digest(job.Program.Code) {
		return "the script " + job.Workflow + " has changed"
	}
	if parts := differingParts(pinned.Input, job.Input); len(parts) > 0 {
		return "its input has another " + strings.Join(parts, ", ")
	}
	return ""
}

// differingParts names the parts of two inputs that are not the same, bodies compared by their hashes alone.
func differingParts(a, b json.RawMessage) []string {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || x == nil || y == nil {
		if bytes.Equal(hashed(a), hashed(b)) {
			return nil
		}
		return []string{"value"}
	}
	names := maps.Clone(x)
	maps.Copy(names, y)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(hashed(x[name]), hashed(y[name])) {
			out = append(out, name)
		}
	}
	return out
}

// hashed is a JSON value in which a reference is its hash alone: under another name it is the same text.
func hashed(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(withoutNames(v))
	if err != nil {
		return raw
	}
	return out
}

func withoutNames(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if sha, ok := v["ref"].(string); ok && params.IsDigest(sha) {
			return map[string]any{"ref": sha}
		}
		for key, x := range v {
			v[key] = withoutNames(x)
		}
	case []any:
		for i, x := range v {
			v[i] = withoutNames(x)
		}
	}
	return v
}
