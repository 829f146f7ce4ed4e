package run

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run/ladder"
)

// The numbers of the retry policy.
const (
	// shortBase and shortMax bound the backoff of a model's own failures: the node is well, another try costs only time.
	shortBase = 500 * time.Millisecond
	shortMax  = 15 * time.Second
	// longBase and longMax bound the backoff of an unreachable node or Ollama, which may be restarting.
	longBase = time.Second
	longMax  = 60 * time.Second
	// maxLosses is how often nodes may lose an item before that counts as the item's fault: one that takes every node
	// down with it must end some time, a night with an unsteady node must not matter.
	maxLosses = 20
)

// nodesFault says that a failure says nothing about the request: it does not use up one of the item's attempts.
func nodesFault(f Failure) bool {
	switch f.Kind {
	case KindNodeLost, KindNodePaused, KindCancelled:
		return true
	case KindUnreachable, KindCannotSend:
		return f.Advice != Never
	default:
		return false
	}
}

// afterFailure decides what a failed attempt means for its item. counted says that it uses up one of the attempts. Another node
// may take the item even when a part of an answer has arrived, because our calls are pure: all that one leaves is its result, and
// that is applied for exactly the attempt in flight (Finish). What a tool writes outside is different: it is tried again only when the
// tool says that it has not happened.
func afterFailure(s *State, st *Step, it *Item, failed *AttemptFailed, now time.Time) (c Consequence, counted bool) {
	f := failed.Cause
	counted = !nodesFault(f)
	if it.Flight.External && (f.Kind == KindUnknown || !counted) {
		return Consequence{Then: ThenUnknown}, true
	}
	used := it.used(st, failed.Phase, counted)
	var next ladder.Next
	if counted && f.Advice != Never && steps[st.Kind].work == model {
		next = st.climb(it, failed.Phase, failedTry(it, failed))
	}
	switch {
	case next.Step == ladder.Person:
		return Consequence{Then: ThenFailed, Step: next.Step, Failure: forAPerson(failed, used.tries)}, counted
	case f.Advice == Never && counted || used.tries >= st.spec.Retry.Attempts || used.losses > maxLosses:
		return s.givenUp(st, it, failed.Phase, now), counted
	}
	return s.again(it, failed, next, used, now), counted
}

// used is what an item's tries come to with the one that has just failed.
type used struct {
	tries   int  // that count: of the work, or of the judge in the seat
	losses  int  // that nodes caused
	counted bool // the last one is among tries
}

func (it *Item) used(st *Step, p Phase, counted bool) used {
	u := used{tries: it.tries.work, losses: it.tries.lost[0] + it.tries.lost[1], counted: counted}
	if st.judges(p) {
		u.tries = it.sitting(st).fails
	}
	if counted {
		u.tries++
	} else {
		u.losses++
	}
	return u
}

// givenUp is what happens when no further try is worth it: another judge sits in the place of one who gives nothing.
func (s *State) givenUp(st *Step, it *Item, p Phase, now time.Time) Consequence {
	if st.judges(p) {
		if seat, other := s.stead(st, it); other {
			return Consequence{Then: ThenRetry, RetryAt: &now, Step: ladder.Model, Model: seat}
		}
	}
	return Consequence{Then: ThenFailed}
}

// forAPerson is the failure of a plan that no model gets right.
func forAPerson(failed *AttemptFailed, tries int) *Failure {
	why := failed.Cause.Message
	if failed.Rejected != nil {
		why = strings.Join(failed.Rejected.Reasons, "; ")
	}
	return &Failure{Kind: KindNeedsHuman, Message: fmt.Sprintf("no plan holds after %d tries: %s", tries, why), Advice: Never,
		Next: []string{"say the goal in other words, or as several smaller ones", "use a larger model"}}
}

// again is another try: how it differs, when, and where it had better not be.
func (s *State) again(it *Item, failed *AttemptFailed, next ladder.Next, u used, now time.Time) (c Consequence) {
	f := failed.Cause
	c = Consequence{Then: ThenRetry, Step: next.Step}
	if next.Step == ladder.Model {
		c.Model = next.Model
	}
	base, limit, n := shortBase, shortMax, u.tries
	if !u.counted {
		base, limit, n = longBase, longMax, u.losses
	}
	at := now
	if f.Kind == KindNodePaused { // nothing failed: it may go on at once, and there again when the person says so
		c.RetryAt = &at
		return c
	}
	if f.Kind != KindNodeLost || u.losses > 1 {
		at = now.Add(backoff(base, limit, n, s.hash(failed.AttemptID)))
	}
	c.RetryAt = &at
	if f.Advice == OtherNode || !u.counted || it.tries.failedOn == failed.Node {
		c.Avoid = failed.Node
	}
	return c
}

// backoff is the wait before try n+1, n from 1: base doubled each time up to limit, and of that a half to all by the hash, so
// that items which failed together do not come back together.
func backoff(base, limit time.Duration, n int, hash uint64) time.Duration {
	d := limit
	if n < 16 {
		d = min(limit, base<<(n-1))
	}
	return d/2 + time.Duration(hash%uint64(d/2+1))
}

// hash mixes the run's seed with an attempt's name: the only randomness of the policy, the same on every replay.
func (s *State) hash(a AttemptID) uint64 {
	h := fnv.New64a()
	var b [40]byte
	for i, n := range []int64{s.Pinned.Seed, int64(a.Pos), int64(a.Item), int64(phaseIndex(a.Phase)), int64(a.Number)} {
		binary.LittleEndian.PutUint64(b[i*8:], uint64(n))
	}
	h.Write(b[:])
	x := h.Sum64()
	// FNV's low bits are weak for short inputs; this is the finaliser of MurmurHash3.
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}

// seed is the sampling seed of an attempt: every counted try has another, within the 31 bits that every runner takes.
func (s *State) seed(it *Item, a AttemptID) int64 {
	a.Number = it.counted(a)
	return int64(s.hash(a) & 0x7fffffff)
}
