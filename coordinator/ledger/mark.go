package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// owner is a run that is pruned, and the key under which its events name a body.
type owner struct{ run, key string }

// marked is what marking knows of a body.
type marked struct {
	size   int64
	live   bool    // it stays: something that is kept names it, or it was stored lately
	owners []int32 // whose it is, of marks.owners; empty when nothing that is pruned names it
}

// marks says of every body that is there who names it.
type marks struct {
	policy PrunePolicy
	bodies map[digest]*marked
	owners []owner
	queue  []digest // live, and not looked into yet
	upTo   int64    // events up to this position have been read
	ruled  bool     // all is marked, and what is found from now on came meanwhile
}

// mark finds what a policy lets go. It looks into every body that stays, as it may name others.
func (s *SQLite) mark(ctx context.Context, p PrunePolicy) (*marks, error) {
	m := &marks{policy: p, bodies: map[digest]*marked{}}
	if err := s.readers.QueryRowContext(ctx, "SELECT coalesce(max(pos), 0) FROM event").Scan(&m.upTo); err != nil {
		return nil, s.explain(err, "find the last event")
	}
	if err := s.listBodies(ctx, m); err != nil {
		return nil, err
	}
	if err := s.markRuns(ctx, m); err != nil {
		return nil, err
	}
	if err := s.markRows(ctx, m); err != nil {
		return nil, err
	}
	if len(m.going()) > 0 { // otherwise there is nothing to look for
		if err := s.follow(ctx, m); err != nil {
			return nil, err
		}
	}
	m.ruled, m.queue = true, nil
	return m, nil
}

// listBodies keeps what was stored lately: it may be for a run that is about to be submitted.
func (s *SQLite) listBodies(ctx context.Context, m *marks) error {
	rows, err := s.readers.QueryContext(ctx, "SELECT sha256, size, coalesce(stored >= ?, 0) FROM artifact WHERE pruned IS NULL", formatTime(m.policy.Before))
	return s.each(rows, err, "list artifacts", func(rows *sql.Rows) error {
		var sha string
		var young bool
		b := &marked{}
		if err := rows.Scan(&sha, &b.size, &young); err != nil {
			return err
		}
		d := parseDigest(sha)
		m.bodies[d] = b
		if young {
			m.keep(d)
		}
		return nil
	})
}

// markRuns reads all events, each once.
func (s *SQLite) markRuns(ctx context.Context, m *marks) error {
	rows, err := s.readers.QueryContext(ctx, `SELECT id, ended IS NOT NULL AND ended < ?, coalesce(summary, '') FROM run`, formatTime(m.policy.Before))
	pruned := map[string]bool{}
	err = s.each(rows, err, "list runs", func(rows *sql.Rows) error {
		var id string
		var old bool
		var summary []byte
		if err := rows.Scan(&id, &old, &summary); err != nil {
			return err
		}
		if old && !slices.Contains(m.policy.Keep, id) {
			pruned[id] = true
			return nil
		}
		scanText(summary, m.keep)
		return nil
	})
	if err != nil {
		return err
	}
	owners := map[owner]int32{}
	rows, err = s.readers.QueryContext(ctx, "SELECT run_id, payload FROM event WHERE pos <= ?", m.upTo)
	return s.each(rows, err, "read events", func(rows *sql.Rows) error {
		var id string
		var payload sql.RawBytes
		if err := rows.Scan(&id, &payload); err != nil {
			return err
		}
		if pruned[id] {
			m.own(id, payload, owners)
		} else {
			scanText(payload, m.keep)
		}
		return nil
	})
}

// own notes what an event of a run that is pruned names: by the policy's keys it lets go, by others it keeps.
func (m *marks) own(id string, payload []byte, owners map[owner]int32) {
	goes := map[digest]bool{}
	for _, r := range References(payload) {
		key, ok := m.policy.lets(r.Key)
		d := parseDigest(r.SHA256)
		b := m.bodies[d]
		if !ok || b == nil {
			continue
		}
		goes[d] = true
		o := owner{id, key}
		n, known := owners[o]
		if !known {
			n = int32(len(m.owners)) //nolint:gosec // runs times keys
			owners[o], m.owners = n, append(m.owners, o)
		}
		if !slices.Contains(b.owners, n) {
			b.owners = append(b.owners, n)
		}
	}
	scanText(payload, func(d digest) {
		if !goes[d] {
			m.keep(d)
		}
	})
}

// lets returns the policy's key that fits a reference's.
func (p PrunePolicy) lets(key string) (string, bool) {
	for _, k := range p.Keys {
		if key == k || strings.HasSuffix(key, "."+k) {
			return k, true
		}
	}
	return "", false
}

// markRows keeps what rows name that belong to no run.
func (s *SQLite) markRows(ctx context.Context, m *marks) error {
	for _, query := range []string{"SELECT value FROM meta", "SELECT value FROM schedule", "SELECT value FROM learned"} {
		rows, err := s.readers.QueryContext(ctx, query)
		err = s.each(rows, err, "read shared values", func(rows *sql.Rows) error {
			var text sql.RawBytes
			if err := rows.Scan(&text); err != nil {
				return err
			}
			scanText(text, m.keep)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keep marks a body that is not to go.
func (m *marks) keep(d digest) {
	if b := m.bodies[d]; b != nil && !b.live {
		b.live = true
		m.queue = append(m.queue, d)
	}
}

// follow keeps what live bodies name.
func (s *SQLite) follow(ctx context.Context, m *marks) error {
	for len(m.queue) > 0 {
		d := m.queue[len(m.queue)-1]
		m.queue = m.queue[:len(m.queue)-1]
		var named []digest
		if err := s.scanBody(ctx, d.String(), func(d digest) { named = append(named, d) }); err != nil {
			return err
		}
		if err := s.keepAll(ctx, m, named); err != nil {
			return err
		}
	}
	return nil
}

// keepAll keeps bodies, those too that were stored after the marks had been made.
func (s *SQLite) keepAll(ctx context.Context, m *marks, named []digest) error {
	for _, d := range named {
		if m.bodies[d] == nil && m.ruled {
			has, err := s.HasArtifact(ctx, d.String())
			if err != nil {
				return err
			}
			if has {
				m.bodies[d] = &marked{}
			}
		}
		m.keep(d)
	}
	return nil
}

func (s *SQLite) scanBody(ctx context.Context, sha string, tell func(digest)) error {
	r, _, err := s.OpenArtifact(ctx, sha)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // only read
	return s.explain(scan(&source{ctx: ctx, r: r}, tell), "read artifact "+sha)
}

// catchUp keeps what events name that came after those that have been read.
func (s *SQLite) catchUp(ctx context.Context, m *marks) error {
	var named []digest
	rows, err := s.readers.QueryContext(ctx, "SELECT pos, payload FROM event WHERE pos > ? ORDER BY pos", m.upTo)
	err = s.each(rows, err, "read the events that came meanwhile", func(rows *sql.Rows) error {
		var payload sql.RawBytes
		if err := rows.Scan(&m.upTo, &payload); err != nil {
			return err
		}
		scanText(payload, func(d digest) { named = append(named, d) })
		return nil
	})
	if err == nil {
		err = s.keepAll(ctx, m, named)
	}
	if err != nil {
		return err
	}
	return s.follow(ctx, m)
}

func (m *marks) goes(b *marked) bool {
	return !b.live && (len(b.owners) > 0 || m.policy.Unused)
}

// going are the bodies that go, in the order of their names.
func (m *marks) going() []digest {
	var out []digest
	for d, b := range m.bodies {
		if m.goes(b) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b digest) int { return strings.Compare(string(a[:]), string(b[:])) })
	return out
}

func (m *marks) report() PruneReport {
	rep := PruneReport{ByKey: map[string]Count{}}
	runs := map[string]bool{}
	for _, b := range m.bodies {
		switch {
		case !m.goes(b):
			if len(b.owners) > 0 {
				rep.Shared.add(b.size)
			}
			continue
		case len(b.owners) == 0:
			rep.Unused.add(b.size)
		default:
			key := m.owners[b.owners[0]].key
			c := rep.ByKey[key]
			c.add(b.size)
			rep.ByKey[key] = c
		}
		rep.Total.add(b.size)
		for _, o := range b.owners {
			runs[m.owners[o].run] = true
		}
	}
	rep.Runs = len(runs)
	return rep
}

// each reads rows one at a time and closes them.
func (s *SQLite) each(rows *sql.Rows, err error, doing string, take func(*sql.Rows) error) error {
	if err != nil {
		return s.explain(err, doing)
	}
	defer rows.Close() //nolint:errcheck // rows.Err below has what matters
	for rows.Next() {
		if err := take(rows); err != nil {
			return s.explain(fmt.Errorf("read a row: %w", err), doing)
		}
	}
	return s.explain(rows.Err(), doing)
}
