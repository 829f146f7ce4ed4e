package coordinator

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/api"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// library keeps workflows by name in the ledger. A name stands for a script that is pinned by its hash, so that neither editing the file
// nor adding it again changes a run that is under way.
type library struct {
	store  ledger.Store
	adding sync.Mutex // one at a time sees what there is and writes
}

// added is where the ledger keeps a workflow, by its name.
const added = "workflow/"

// Find implements api.Library and is what spawns are resolved with. What a user has added goes before what a later version builds in.
func (l *library) Find(ctx context.Context, name string) (script.Program, error) {
	if name, sha, sourceMap, ok := parsePin(name); ok {
		return l.open(ctx, name, sha, sourceMap)
	}
	all, err := l.Added(ctx)
	if err != nil {
		return script.Program{}, err
	}
	if i := slices.IndexFunc(all, func(a api.Added) bool { return a.Name == name }); i >= 0 {
		_, sha, sourceMap, _ := parsePin(all[i].Pinned)
		return l.open(ctx, name, sha, sourceMap)
	}
	if p, ok := workflows.Lookup(name); ok {
		return p, nil
	}
	names := workflows.List()
	for _, a := range all {
		names = append(names, a.Name)
	}
	return script.Program{}, apierr.New(apierr.NotFound, "no workflow is named %q; there are %s", name, strings.Join(names, ", ")).WithNext("loopkeeper workflows")
}

// Added implements api.Library.
func (l *library) Added(ctx context.Context) ([]api.Added, error) {
	rows, err := l.store.Meta(ctx, added)
	if err != nil {
		return nil, err
	}
	var out []api.Added
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		var a api.Added
		if err := json.Unmarshal(rows[key], &a); err != nil {
			return nil, apierr.Wrap(err, apierr.LedgerCorrupt, "read the workflow %s", strings.TrimPrefix(key, added))
		}
		out = append(out, a)
	}
	return out, nil
}

// Add implements api.Library.
func (l *library) Add(ctx context.Context, a api.Added, p script.Program, replace bool) (api.Added, bool, error) {
	l.adding.Lock()
	defer l.adding.Unlock()
	all, err := l.Added(ctx)
	if err != nil {
		return a, false, err
	}
	commit := ledger.Commit{Bodies: bodiesOf(p)}
	a.Pinned, a.Script, a.Time = pinOf(p), ledger.Digest(p.Code), time.Now().UTC()
	i := slices.IndexFunc(all, func(b api.Added) bool { return b.Name == a.Name })
	switch {
	case i >= 0 && all[i].Pinned == a.Pinned:
		return all[i], false, nil
	case i >= 0 && !replace:
		return a, false, apierr.New(apierr.Conflict, "there is a workflow %s already, with another script", a.Name).
			WithNext("add --replace: runs under way keep the script that they began with", "choose another --name")
	}
	value, err := json.Marshal(a)
	if err != nil {
		return a, false, apierr.Wrap(err, apierr.Internal, "keep the workflow %s", a.Name)
	}
	commit.Meta = map[string]json.RawMessage{added + a.Name: value}
	return a, i >= 0, l.store.Append(ctx, commit)
}

// Remove implements api.Library.
func (l *library) Remove(ctx context.Context, name string) error {
	l.adding.Lock()
	defer l.adding.Unlock()
	all, err := l.Added(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(a api.Added) bool { return a.Name == name }) {
		return apierr.New(apierr.NotFound, "no workflow was added as %q", name).WithNext("loopkeeper workflows")
	}
	return l.store.Append(ctx, ledger.Commit{Meta: map[string]json.RawMessage{added + name: nil}})
}

// Pin implements api.Library.
func (l *library) Pin(ctx context.Context, p script.Program) (string, error) {
	return pinOf(p), l.store.Append(ctx, ledger.Commit{Bodies: bodiesOf(p)})
}

func bodiesOf(p script.Program) []ledger.Body {
	return []ledger.Body{{Name: p.Name, Data: p.Code}, {Name: p.Name + ".map", Data: p.SourceMap}}
}

// pinOf is NAME@CODE/MAP, the hashes of a script and of its source map. Whoever keeps it keeps both from being pruned.
func pinOf(p script.Program) string {
	return p.Name + "@" + ledger.Digest(p.Code) + "/" + ledger.Digest(p.SourceMap)
}

var pin = regexp.MustCompile(`^(.*)@([0-9a-f]{64})/([0-9a-f]{64})$`)

func parsePin(text string) (name, code, sourceMap string, ok bool) {
	m := pin.FindStringSubmatch(text)
	if m == nil {
		return "", "", "", false
	}
	return m[1], m[2], m[3], true
}

func (l *library) open(ctx context.Context, name, code, sourceMap string) (p script.Program, err error) {
	p.Name = name
	if p.Code, err = l.read(ctx, code); err == nil {
		p.SourceMap, err = l.read(ctx, sourceMap)
	}
	if err != nil {
		err = apierr.Wrap(err, apierr.LedgerCorrupt, "open the workflow %s", name)
	}
	return p, err
}

func (l *library) read(ctx context.Context, sha string) ([]byte, error) {
	r, _, err := l.store.OpenArtifact(ctx, sha)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // only read
	return io.ReadAll(r)
}
