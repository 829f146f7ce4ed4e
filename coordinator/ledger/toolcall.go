package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// ToolCall is what is kept of one call of a tool, so that after a crash its effect does not happen twice.
type ToolCall struct {
	Key     string // of the call
	Updated time.Time
	Value   json.RawMessage // the caller's own. A body that it names is not kept for it: the events of the call's run name those that count
}

func (c Commit) checkToolCalls() error {
	for _, t := range c.ToolCalls {
		if t.Key == "" || !json.Valid(t.Value) {
			return apierr.New(apierr.InvalidArgument, "what is to be kept of the call %q lacks its key or is no valid JSON", t.Key)
		}
	}
	return nil
}

func insertToolCalls(ctx context.Context, tx *sql.Tx, calls []ToolCall) error {
	for _, t := range calls {
		_, err := tx.ExecContext(ctx, `INSERT INTO tool_call (key, updated, value) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE
			SET updated = excluded.updated, value = excluded.value`, t.Key, formatTime(t.Updated), string(t.Value))
		if err != nil {
			return fmt.Errorf("write the call %s: %w", t.Key, err)
		}
	}
	return nil
}

// ToolCall implements Store.
func (s *SQLite) ToolCall(ctx context.Context, key string) (ToolCall, bool, error) {
	t := ToolCall{Key: key}
	var at string
	var value []byte
	err := s.readers.QueryRowContext(ctx, `SELECT updated, value FROM tool_call WHERE key = ?`, key).Scan(&at, &value)
	if errors.Is(err, sql.ErrNoRows) {
		return ToolCall{}, false, nil
	}
	if err == nil {
		t.Value = value
		t.Updated, err = s.parseTime(at)
	}
	if err != nil {
		return ToolCall{}, false, s.explain(err, "look up the call "+key)
	}
	return t, true, nil
}
