package api

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// The limits of a run are its own, else its workflow's, else the default's. Which they are is kept beside it, for messages.

// limitAt are the limits by name.
var limitAt = map[string]func(*run.Limits, int64) int64{
	"active_seconds": func(l *run.Limits, n int64) int64 { return set(&l.ActiveSeconds, n) },
	"tokens":         func(l *run.Limits, n int64) int64 { return set(&l.Tokens, n) },
	"calls":          func(l *run.Limits, n int64) int64 { return set(&l.Calls, n) },
	"artifact_bytes": func(l *run.Limits, n int64) int64 { return set(&l.ArtifactBytes, n) },
	"spawn_depth": func(l *run.Limits, n int64) int64 {
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

// budgets are the limits that a run or its workflow sets, a negative one for none, and who set each.
func (s *Server) budgets(r *coordinatorv1.SubmitRequest, workflow string) (l run.Limits, by map[string]string, err error) {
	by = map[string]string{}
	asked := maps.Clone(r.GetLimits())
	if _, err := timeLimit(r.GetTimeLimitSeconds()); err != nil {
		return l, nil, err
	}
	if n := r.GetTimeLimitSeconds(); n != 0 {
		if _, twice := asked["active_seconds"]; twice {
			return l, nil, apierr.New(apierr.InvalidArgument, "the active time is limited twice")
		}
		if asked == nil {
			asked = map[string]int64{}
		}
		asked["active_seconds"] = n
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		n, at := asked[name], limitAt[name]
		switch {
		case at == nil:
			return l, nil, apierr.New(apierr.InvalidArgument, "there is no limit %q", name).WithNext("use one of " + strings.Join(sortedKeys(limitAt), ", "))
		case n < 0:
			return l, nil, apierr.New(apierr.InvalidArgument, "a limit %s of %d makes no sense", name, n).WithNext("use 0 for none, or leave it out")
		case n == 0:
			n = -1
		}
		if name == "active_seconds" {
			if _, err := timeLimit(max(n, 0)); err != nil {
				return l, nil, err
			}
		}
		at(&l, n)
		by[name] = "run"
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

// origins is where the ledger keeps who set the limits of a run.
const origins = "run.limits/"

// keepOrigins remembers who set a run's limits; all else is the default's.
func (s *Server) keepOrigins(ctx context.Context, id string, by map[string]string) error {
	if len(by) == 0 {
		return nil
	}
	raw, err := json.Marshal(by)
	if err != nil {
		return err
	}
	return s.o.Store.Append(ctx, ledger.Commit{Meta: map[string]json.RawMessage{origins + id: raw}})
}

// runMessage is a run with who set its limits. A child has its parent's, a fork those of the run that it builds on.
func (s *Server) runMessage(ctx context.Context, v engine.View) *coordinatorv1.Run {
	m := runMessage(v)
	if len(m.GetLimits()) == 0 {
		return m
	}
	rows, err := s.o.Store.Meta(ctx, origins+v.ID)
	var by map[string]string
	if err == nil && rows[origins+v.ID] != nil {
		err = json.Unmarshal(rows[origins+v.ID], &by)
	}
	for _, l := range m.GetLimits() {
		switch {
		case err != nil:
		case by[l.GetName()] != "":
			l.SetBy = by[l.GetName()]
		case v.Parent != "":
			l.SetBy = "parent"
		case v.Base != "":
			l.SetBy = "base"
		default:
			l.SetBy = "default"
		}
	}
	return m
}
