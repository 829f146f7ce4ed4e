package identity

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Bounds of what refused peers can make a log grow by.
const (
	sayAgain     = time.Hour // the same host for the same reason
	sayAtMost    = 30        // lines in a minute, of all hosts
	rememberMost = 1024      // pairs of host and reason
	textMost     = 300       // bytes of an error's text
)

// Refusals writes who was refused to a log: once per host and reason in an hour, and not more lines than a person can read,
// whatever a hostile network does. What was left out is counted in the next line.
type Refusals struct {
	log *slog.Logger
	now func() time.Time

	mu     sync.Mutex
	said   map[refused]time.Time
	minute time.Time
	lines  int // in minute
	left   int // out since the last line
}

type refused struct {
	host   string
	reason Reason
}

// NewRefusals returns one that writes to log; a nil now is time.Now.
func NewRefusals(log *slog.Logger, now func() time.Time) *Refusals {
	if now == nil {
		now = time.Now
	}
	return &Refusals{log: log, now: now, said: map[refused]time.Time{}}
}

// Note notes that the peer at addr was refused because of err.
func (r *Refusals) Note(addr net.Addr, err error) {
	reason := ReasonOf(err)
	host := HostOf(addr)
	left, ok := r.admit(refused{host, reason})
	if !ok {
		return
	}
	e := apierr.As(err)
	fields := []any{"address", host, "reason", string(reason), "error", cut(e.Error())}
	if len(e.Next) > 0 {
		fields = append(fields, "next", e.Next[0])
	}
	if left > 0 {
		fields = append(fields, "others_refused", left)
	}
	r.log.Log(context.Background(), slog.LevelWarn, "refused a peer", fields...)
}

// admit says whether a line may be written, and how many were left out before it.
func (r *Refusals) admit(k refused) (left int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if last, known := r.said[k]; known && now.Sub(last) < sayAgain {
		return 0, false
	}
	if now.Sub(r.minute) >= time.Minute {
		r.minute, r.lines = now, 0
		for k, last := range r.said {
			if now.Sub(last) >= sayAgain {
				delete(r.said, k)
			}
		}
	}
	if r.lines >= sayAtMost || len(r.said) >= rememberMost {
		r.left++
		return 0, false
	}
	r.said[k], r.lines = now, r.lines+1
	left, r.left = r.left, 0
	return left, true
}

// ReasonOf says why a handshake failed.
func ReasonOf(err error) Reason {
	var refusal *Refusal
	var clear tls.RecordHeaderError
	switch {
	case errors.As(err, &refusal):
		return refusal.Reason
	case errors.As(err, &clear):
		return ClearText
	case errors.Is(err, os.ErrDeadlineExceeded):
		return TooSlow
	default:
		return HandshakeFailed
	}
}

// HostOf is the IP address of a peer without its port; "" for a nil one.
func HostOf(addr net.Addr) string {
	if addr == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return host
}

func cut(s string) string {
	if len(s) > textMost {
		return s[:textMost] + "…"
	}
	return s
}
