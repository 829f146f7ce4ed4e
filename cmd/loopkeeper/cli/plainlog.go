package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// plainLog is the slog.Handler of people: lines that fit among what a daemon says, with time, level, text and facts.
type plainLog struct {
	w     io.Writer
	lock  *sync.Mutex
	level slog.Level
	facts string
}

// told is what the daemons say themselves, with the node's name: see telling.go.
const told = "node lost"

// Enabled implements slog.Handler.
func (p plainLog) Enabled(_ context.Context, level slog.Level) bool { return level >= p.level }

// Handle implements slog.Handler.
func (p plainLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == told {
		return nil
	}
	var b strings.Builder
	b.WriteString(p.facts)
	said := map[string]string{}
	r.Attrs(func(a slog.Attr) bool {
		said[a.Key] = a.Value.String()
		b.WriteString(fact(a))
		return true
	})
	facts := b.String()
	if said["node"] != "" && said["kind"] != "" && said["err"] == "" { // what happened to a machine: the text names it and all else
		facts = "; loopkeeper nodes " + said["node"] + " says more"
	}
	word := map[slog.Level]string{slog.LevelWarn: "warning: ", slog.LevelError: "error: "}[r.Level]
	p.lock.Lock()
	defer p.lock.Unlock()
	_, err := fmt.Fprintf(p.w, "%s %s%s%s\n", r.Time.Local().Format("15:04:05"), word, r.Message, facts)
	return err
}

// WithAttrs implements slog.Handler.
func (p plainLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key != "part" { // the text says what it is about
			p.facts += fact(a)
		}
	}
	return p
}

// WithGroup implements slog.Handler; nobody here groups.
func (p plainLog) WithGroup(string) slog.Handler { return p }

func fact(a slog.Attr) string { return fmt.Sprintf("  %s %v", a.Key, a.Value) }
