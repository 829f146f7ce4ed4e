package ledger

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// export is one call of Export.
type export struct {
	s      *SQLite
	ctx    context.Context
	row    RunRow
	end    chainEnd
	made   time.Time
	bodies []Artifact // by name
	why    []Decision
}

// Export implements Store. Events never change, so they are read as often as needed instead of being held in memory.
func (s *SQLite) Export(ctx context.Context, runID string, w io.Writer) error {
	s.copying.RLock()
	defer s.copying.RUnlock()
	x := &export{s: s, ctx: ctx, made: time.Now().UTC()}
	if err := x.begin(runID); err != nil {
		return err
	}
	to := &sink{w: w}
	zip := gzip.NewWriter(to)
	out := tar.NewWriter(zip)
	err := x.write(out)
	if err == nil {
		err = errors.Join(out.Close(), zip.Close())
	}
	if to.err != nil {
		return fmt.Errorf("write the export of run %s: %w", runID, to.err)
	}
	return s.explain(err, "export run "+runID)
}

// sink notes its own error, so that it is not taken for one of our disk.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// begin fixes what is exported: one statement reads the row and the head of one moment.
func (x *export) begin(runID string) error {
	s := x.s
	rows, err := s.readers.QueryContext(x.ctx, "SELECT "+runColumns+", events, head FROM run WHERE id = ?", runID)
	found, err := collect(s, rows, err, "read run "+runID, func(rows *sql.Rows) (RunRow, error) {
		return s.scanRun(rows, &x.end.seq, &x.end.hash)
	})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return noRun(runID)
	}
	x.row = found[0]
	if x.why, err = s.Decisions(x.ctx, runID, -1); err != nil {
		return err
	}
	return x.findBodies()
}

// findBodies lists what the events name, and what those bodies name in turn.
func (x *export) findBodies() error {
	seen := map[digest]bool{}
	var queue []digest
	keep := func(d digest) {
		if !seen[d] {
			seen[d] = true
			queue = append(queue, d)
		}
	}
	scanText(x.row.Summary, keep)
	if err := x.eachEvent(func(e rawEvent) error {
		scanText([]byte(e.payload), keep)
		return nil
	}); err != nil {
		return err
	}
	for len(queue) > 0 {
		d := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		a, err := x.s.StatArtifact(x.ctx, d.String())
		if apierr.CodeOf(err) == apierr.NotFound {
			continue // some other number
		}
		if err == nil && a.Pruned.IsZero() {
			err = x.s.scanBody(x.ctx, a.SHA256, keep)
		}
		if err != nil {
			return err
		}
		x.bodies = append(x.bodies, a)
	}
	slices.SortFunc(x.bodies, func(a, b Artifact) int { return strings.Compare(a.SHA256, b.SHA256) })
	return nil
}

func (x *export) eachEvent(take func(rawEvent) error) error {
	for after := int64(0); after < x.end.seq; {
		rows, err := x.s.readers.QueryContext(x.ctx, "SELECT seq, time, kind, payload, hash FROM event WHERE run_id = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
			x.row.ID, after, x.end.seq, eventPage)
		page, err := collect(x.s, rows, err, "read the events of run "+x.row.ID, func(rows *sql.Rows) (e rawEvent, err error) {
			return e, rows.Scan(&e.seq, &e.at, &e.kind, &e.payload, &e.hash)
		})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return corrupt(x.s.dir, nil, "event %d of run %s is missing", after+1, x.row.ID)
		}
		for _, e := range page {
			if err := take(e); err != nil {
				return err
			}
			after = e.seq
		}
	}
	return nil
}

// part is a file of the export; write may be called more than once and writes the same each time.
type part struct {
	name  string
	fact  fileFact
	write func(io.Writer) error
}

func (x *export) write(out *tar.Writer) error {
	parts := []part{{name: archiveRow, write: x.writeRow}, {name: archiveList, write: x.writeList},
		{name: archiveEvents, write: x.writeEvents}, {name: archiveWhy, write: x.writeWhy}}
	m := manifest{Format: archiveVersion, Run: x.row.ID, Made: x.made, Events: x.end.seq, Head: hex.EncodeToString(x.end.hash),
		Bodies: int64(len(x.bodies)), Files: map[string]fileFact{}}
	for _, a := range x.bodies {
		if a.Pruned.IsZero() {
			m.Bytes += a.Size
		}
	}
	for i := range parts {
		if err := parts[i].measure(); err != nil {
			return err
		}
		m.Files[parts[i].name] = parts[i].fact
	}
	head, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	parts = append([]part{{name: archiveReadme, write: text([]byte(archiveText))}, {name: archiveHead, write: text(append(head, '\n'))}}, parts...)
	for i := range parts {
		if err := parts[i].measure(); err != nil {
			return err
		}
		if err := x.add(out, parts[i]); err != nil {
			return err
		}
	}
	for _, a := range x.bodies {
		if !a.Pruned.IsZero() {
			continue
		}
		body := part{archiveBodies + a.SHA256, fileFact{a.Size, a.SHA256}, func(w io.Writer) error { return x.s.copyBody(x.ctx, a.SHA256, w) }}
		if err := x.add(out, body); err != nil {
			return err
		}
	}
	sums := part{name: archiveSums, write: func(w io.Writer) error { return x.writeSums(w, parts) }}
	if err := sums.measure(); err != nil {
		return err
	}
	return x.add(out, sums)
}

func (p *part) measure() error {
	m := &meter{sum: sha256.New()}
	err := p.write(m)
	p.fact = m.fact()
	return err
}

func (x *export) add(out *tar.Writer, p part) error {
	err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: archiveFolder + p.name, Size: p.fact.Size, Mode: 0o600, ModTime: x.made.Truncate(time.Second)})
	if err == nil {
		err = p.write(out)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", p.name, err)
	}
	return nil
}

func text(b []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(b); return err }
}

// newLines encodes without escapes that nobody wrote.
func newLines(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

func (x *export) writeRow(w io.Writer) error {
	lines := newLines(w)
	lines.SetIndent("", "  ")
	return lines.Encode(archivedRun(x.row))
}

func (x *export) writeList(w io.Writer) error {
	lines := newLines(w)
	for _, a := range x.bodies {
		if err := lines.Encode(archivedBody(a)); err != nil {
			return err
		}
	}
	return nil
}

func (x *export) writeWhy(w io.Writer) error {
	lines := newLines(w)
	for _, d := range x.why {
		if err := lines.Encode(archivedDecision{d.Step, d.Item, d.Time, d.Action, d.Node, d.Why}); err != nil {
			return err
		}
	}
	return nil
}

func (x *export) writeEvents(w io.Writer) error {
	var line []byte
	return x.eachEvent(func(e rawEvent) (err error) {
		if line, err = e.appendLine(line[:0]); err == nil {
			_, err = w.Write(line)
		}
		return err
	})
}

func (x *export) writeSums(w io.Writer, parts []part) error {
	for _, p := range parts {
		if _, err := fmt.Fprintf(w, "%s  %s\n", p.fact.SHA256, p.name); err != nil {
			return err
		}
	}
	for _, a := range x.bodies {
		if a.Pruned.IsZero() {
			if _, err := fmt.Fprintf(w, "%s  %s\n", a.SHA256, archiveBodies+a.SHA256); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *SQLite) copyBody(ctx context.Context, sha string, w io.Writer) error {
	r, _, err := s.OpenArtifact(ctx, sha)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // only read
	_, err = io.Copy(w, &source{ctx: ctx, r: r})
	return err
}
