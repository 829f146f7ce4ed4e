package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// What happened to a machine is a sentence, and where more of it stands; other lines keep their facts.
func TestPlainLogSaysWhereMoreStands(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(plainLog{w: &out, lock: &sync.Mutex{}, level: slog.LevelWarn}).With("part", "engine")
	log.Warn("qwen3:8b at 8192 tokens did not fit on den", "node", "den-1", "kind", "spilled", "model", "qwen3:8b")
	log.Info("den is paused", "node", "den-1", "kind", "use")
	log.Warn("what was learned of a node cannot be read", "node", "den-1", "kind", "speed", "err", "it is no JSON")
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		_, text, _ := strings.Cut(line, " ") // after the time
		lines = append(lines, text)
	}
	want := "warning: qwen3:8b at 8192 tokens did not fit on den; loopkeeper nodes den-1 says more|" +
		"warning: what was learned of a node cannot be read  node den-1  kind speed  err it is no JSON"
	if got := strings.Join(lines, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
