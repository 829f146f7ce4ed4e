package api

import (
	"maps"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// The limits of a run are its own, else its workflow's, else the default's; those of a fork are its own, else those of its base. Who set
// each is pinned with them, for messages.

// limitAt are the limits by name.
var limitAt = map[string]func(*run.Limits, int64) int64{
	run.LimitActive:   func(l *run.Limits, n int64) int64 { return set(&l.ActiveSeconds, n) },
	run.LimitTokens:   func(l *run.Limits, n int64) int64 { return set(&l.Tokens, n) },
	run.LimitCalls:    func(l *run.Limits, n int64) int64 { return set(&l.Calls, n) },
	run.LimitArtifact: func(l *run.Limits, n int64) int64 { return set(&l.ArtifactBytes, n) },
	run.LimitDepth: func(l *run.Limits, n int64) int64 {
		depth := int64(l.SpawnDepth)
		defer func() { l.SpawnDepth = int(depth) }()
		return set(&depth, n)
	},
}

// set puts n in place of what is not set, and returns what is there then.
func set(at *int64, n int64) int64 {
	if *at == 0 {
		*at = n
	}
	return *at
}

// asksLimits is a request that sets limits of a run.
type asksLimits interface {
	GetLimits() map[string]int64
	GetTimeLimitSeconds() int64
}

// asked are the limits that a request sets, a negative one for none, and that it is the run that sets them.
func asked(r asksLimits) (l run.Limits, by map[string]string, err error) {
	by = map[string]string{}
	if _, err := timeLimit(r.GetTimeLimitSeconds()); err != nil {
		return l, nil, err
	}
	all := maps.Clone(r.GetLimits())
	if n := r.GetTimeLimitSeconds(); n != 0 {
		if _, twice := all[run.LimitActive]; twice {
			return l, nil, apierr.New(apierr.InvalidArgument, "the active time is limited twice").WithNext("use --time-limit or --limit active_seconds, not both")
		}
		if all == nil {
			all = map[string]int64{}
		}
		all[run.LimitActive] = n
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n, at := all[name], limitAt[name]
		switch {
		case at == nil:
			return l, nil, apierr.New(apierr.InvalidArgument, "there is no limit %q", name).WithNext("use one of " + strings.Join(sortedKeys(limitAt), ", "))
		case n < 0:
			return l, nil, apierr.New(apierr.InvalidArgument, "a limit %s of %d makes no sense", name, n).WithNext("use 0 for none, or leave it out")
		case n == 0:
			n = -1
		}
		if name == run.LimitActive {
			if _, err := timeLimit(max(n, 0)); err != nil {
				return l, nil, err
			}
		}
		at(&l, n)
		by[name] = "run"
	}
	return l, by, nil
}

// budgets are the limits that a run or its workflow sets, a negative one for none, and who set each.
func (s *Server) budgets(r *coordinatorv1.SubmitRequest, workflow string) (l run.Limits, by map[string]string, err error) {
	if l, by, err = asked(r); err != nil {
		return l, nil, err
	}
	own := s.o.Budgets[workflow]
	for name, at := range limitAt {
		if n := at(&own, 0); n != 0 && by[name] == "" {
			at(&l, n)
			by[name] = "workflow"
		}
	}
	return l, by, nil
}
