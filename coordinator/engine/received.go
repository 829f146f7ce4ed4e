package engine

import (
	"math"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// received is the service that each run received, by run id. It fades, so that fair shares are about the last minutes.
type received map[string]service

type service struct {
	seconds float64
	at      time.Time
}

func (s service) now(now time.Time) float64 {
	return s.seconds * math.Exp2(-now.Sub(s.at).Seconds()/scheduler.ShareHalfLife.Seconds())
}

func (r received) add(run string, d time.Duration, now time.Time) {
	r[run] = service{r[run].now(now) + d.Seconds(), now}
}

// snapshot is what counts now.
func (r received) snapshot(now time.Time) map[string]time.Duration {
	out := make(map[string]time.Duration, len(r))
	for run, s := range r {
		out[run] = time.Duration(s.now(now) * float64(time.Second))
	}
	return out
}
