package ui

import (
	"fmt"
	"strings"
	"time"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// stillness is a run of which nothing runs and all that is left waits. Where no picture of it is drawn, that is said when it begins.
type stillness struct {
	since time.Time // zero while something runs
	told  string    // what for, as last said
	text  string    // what for, in words, while it lasts
}

// stillFor is how long all must wait before it is news: between two calls it happens all the time.
const stillFor = 2 * time.Second

// news says once what all of a run waits for, and again when that is something else; "" is no news.
func (s *stillness) news(r *coordinatorv1.Run, now time.Time) string {
	c := r.GetItems()
	if r.GetEnded() != nil || c.GetRunning() > 0 || c.GetWaiting() == 0 || len(r.GetWaiting()) == 0 {
		*s = stillness{}
		return ""
	}
	if s.since.IsZero() {
		s.since = now
	}
	var kinds, each []string
	for _, w := range r.GetWaiting() {
		if w.GetWaitingFor() == "human" { // which is said as such
			continue
		}
		text := fmt.Sprintf("%s for %s", Count(w.GetCount()), WaitText(w.GetWaitingFor()))
		if w.GetWhy() != "" {
			text += ": " + Line(w.GetWhy())
		}
		kinds, each = append(kinds, w.GetWaitingFor()), append(each, text)
	}
	kind := strings.Join(kinds, ", ")
	if s.text = ""; now.Sub(s.since) < stillFor || kind == "" {
		return ""
	}
	s.text = "all wait, " + strings.Join(each, "; ")
	if kind == s.told {
		return ""
	}
	s.told = kind
	return s.text
}

// or is what all wait for, which matters more than any other text while it lasts.
func (s *stillness) or(other string) string {
	if s.text != "" {
		return s.text
	}
	return other
}
