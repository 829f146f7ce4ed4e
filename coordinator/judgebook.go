package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	"github.com/loopkeeper/loopkeeper/coordinator/judges"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// judgeBook keeps in the ledger what was found out about judges.
type judgeBook struct {
	store   ledger.Store
	view    func() []fleet.View
	prompts string // version of the texts that judges are given now
}

func (o Options) newJudgeBook(view func() []fleet.View) *judgeBook {
	pinned := map[string]string{}
	for _, p := range o.Prompts.List() {
		pinned[p.Name] = p.SHA256
	}
	return &judgeBook{store: o.Store, view: view, prompts: run.JudgePrompts(pinned)}
}

// texts are all prompts that new runs pin, by name.
func (o Options) texts() map[string]string {
	out := map[string]string{}
	for _, p := range o.Prompts.List() {
		out[p.Name] = p.Text
	}
	return out
}

// Records implements api.JudgeBook.
func (b *judgeBook) Records(ctx context.Context) ([]judges.Record, error) {
	rows, err := b.store.Meta(ctx, judges.Prefix)
	if err != nil {
		return nil, err
	}
	var out []judges.Record
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		var r judges.Record
		if err := json.Unmarshal(rows[key], &r); err != nil {
			return nil, apierr.Wrap(err, apierr.LedgerCorrupt, "read what is known of the judge %s", strings.TrimPrefix(key, judges.Prefix))
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(x, y judges.Record) int {
		return cmp.Or(cmp.Compare(x.Judge, y.Judge), cmp.Compare(x.Type, y.Type), y.Time.Compare(x.Time))
	})
	return out, nil
}

// Keep implements api.JudgeBook.
func (b *judgeBook) Keep(ctx context.Context, records []judges.Record) error {
	c := ledger.Commit{Meta: map[string]json.RawMessage{}}
	for _, r := range records {
		value, err := json.Marshal(r)
		if err != nil {
			return apierr.Wrap(err, apierr.Internal, "keep what is known of %s", r.Judge)
		}
		c.Meta[r.Key()] = value
	}
	return b.store.Append(ctx, c)
}

// Now implements api.JudgeBook.
func (b *judgeBook) Now(model string) judges.Now {
	n := judges.Now{Prompts: b.prompts, Servers: map[string][]string{}}
	for _, v := range b.view() {
		if v.State == scheduler.NodeLost {
			continue
		}
		for _, m := range v.Report.GetModels() {
			if fullName(m.GetName()) == fullName(model) {
				n.Digests = append(n.Digests, m.GetDigest())
				if version := v.Report.GetOllama().GetVersion(); version != "" {
					n.Servers[m.GetDigest()] = append(n.Servers[m.GetDigest()], version)
				}
			}
		}
	}
	return n
}

// pinned is what new runs are given: what still holds.
func (b *judgeBook) pinned(ctx context.Context) ([]run.Calibrated, error) {
	records, err := b.Records(ctx)
	if err != nil {
		return nil, err
	}
	var out []run.Calibrated
	for _, r := range records {
		if r.Stale(b.Now(r.Judge)) == "" {
			out = append(out, run.Calibrated{Model: r.Judge, Digest: r.Digest, Prompts: r.Prompts, Type: r.Type, N: r.N(), TPR: r.Passed.Share(), TNR: r.Found.Share()})
		}
	}
	return out, nil
}

// fullName is a model's name as Ollama knows it: without a tag it is the latest.
func fullName(model string) string {
	if strings.LastIndexByte(model, ':') > strings.LastIndexByte(model, '/') {
		return model
	}
	return model + ":latest"
}
