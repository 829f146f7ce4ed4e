package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// bodyKind is a kind of bodies that may be dropped, as people call it.
type bodyKind struct {
	name string
	key  string // under which events name them
	lost string // what can no longer be done with such a run
}

var bodyKinds = []bodyKind{
	{"prompts", ledger.KeyPrompt, "no failed call can be looked at as it was asked, and why has nothing to put a question to"},
	{"replies", ledger.KeyReply, "no answer can be looked at as it was received"},
	{"thinking", ledger.KeyThinking, "nothing of what a model thought before it answered can be looked at"},
	{"texts", ledger.KeyResult, "texts of results cannot be opened, nor taken over by another run; a script that read one cannot be replayed"},
	{"inputs", "ref", "what was handed in is gone, and texts of results with it: a script that read one cannot be replayed, and nothing can be tried again or forked"},
}

// kindOfKey is what people call the bodies that events name by key.
func kindOfKey(key string) string {
	for _, k := range bodyKinds {
		if key == k.key {
			return k.name
		}
	}
	return key
}

// Prune implements the service.
func (r *records) Prune(ctx context.Context, q *coordinatorv1.PruneRequest) (*coordinatorv1.PruneResponse, error) {
	out, err := r.prune(ctx, q)
	return out, apierr.ToStatus(err)
}

func (r *records) prune(ctx context.Context, q *coordinatorv1.PruneRequest) (*coordinatorv1.PruneResponse, error) {
	if s := q.GetOlderSeconds(); s < 0 || s > 100*365*24*3600 {
		return nil, apierr.New(apierr.InvalidArgument, "an age of %d seconds makes no sense", s).WithNext("loopkeeper prune --older 30d --dry-run")
	}
	kinds := q.GetKinds()
	if len(kinds) == 0 {
		kinds = []string{"prompts", "replies", "thinking"}
	}
	policy := ledger.PrunePolicy{Before: time.Now().Add(-time.Duration(q.GetOlderSeconds()) * time.Second), DryRun: q.GetDryRun()}
	for _, name := range kinds {
		i := slices.IndexFunc(bodyKinds, func(k bodyKind) bool { return k.name == name })
		if i < 0 {
			return nil, apierr.New(apierr.InvalidArgument, "no bodies are called %q: there are %s", name, kindNames()).WithNext("loopkeeper prune --older 30d --kinds prompts,replies --dry-run")
		}
		policy.Keys = append(policy.Keys, bodyKinds[i].key)
	}
	rep, err := r.s.o.Store.Prune(ctx, policy)
	if err != nil {
		return nil, err
	}
	out := &coordinatorv1.PruneResponse{Runs: int64(rep.Runs), Bodies: rep.Total.Bodies, Bytes: rep.Total.Bytes, Shared: rep.Shared.Bodies,
		DiskBefore: rep.DiskBefore, DiskAfter: rep.DiskAfter}
	for _, k := range bodyKinds {
		if c := rep.ByKey[k.key]; c.Bodies > 0 {
			out.Dropped = append(out.Dropped, &coordinatorv1.Dropped{Kind: k.name, Bodies: c.Bodies, Bytes: c.Bytes})
			out.Lost = append(out.Lost, fmt.Sprintf("without %s: %s", k.name, k.lost))
		}
	}
	return out, nil
}

func kindNames() string {
	var names []string
	for _, k := range bodyKinds {
		names = append(names, k.name)
	}
	return strings.Join(names, ", ")
}
