package api

import (
	"io"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// What is too large is refused by the limit's name, as it comes and not at its end.
func TestATextBeyondTheLimit(t *testing.T) {
	chunk, sent := []byte(strings.Repeat("x", 1<<20)), 0
	r := &bodyReader{name: "all.jsonl", limit: 3 << 20, in: &chunks{next: func() ([]byte, error) { sent++; return chunk, nil }}}
	_, err := io.Copy(io.Discard, r)
	got := apierr.As(err)
	if got == nil || got.Code != apierr.InvalidArgument || !strings.Contains(got.Message, "all.jsonl is larger than 3 MiB") || len(got.Next) == 0 || sent != 4 {
		t.Errorf("after %d chunks: %v", sent, err)
	}
}
