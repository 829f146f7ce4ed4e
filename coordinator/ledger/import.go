package ledger

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Imported says what Import took in.
type Imported struct {
	Run      RunRow
	Known    bool   // the run was here already, event for event
	KeyOwner string // the run here that has the imported run's idempotency key, so that the imported one is without; "" for none
	Bodies   int64  // in the file
	Bytes    int64
	Pruned   int64 // bodies that had been pruned where it was exported
}

// Import implements Store. The file is read three times: all of it is checked before anything of it is stored, and bodies are
// stored before the events that name them.
func (s *SQLite) Import(ctx context.Context, r io.Reader, ended []string) (Imported, error) {
	s.copying.RLock()
	defer s.copying.RUnlock()
	f, err := s.spool(ctx, r)
	if err != nil {
		return Imported{}, err
	}
	defer func() {
		_ = f.Close() // only read
		_ = os.Remove(f.Name())
	}()
	var in Imported
	var head manifest
	err = s.reread(ctx, f, unpacked{begin: func(m manifest, row RunRow, bodies []archivedBody) error {
		head, in = m, Imported{Run: row, Bodies: int64(len(bodies)), Bytes: m.Bytes}
		for _, b := range bodies {
			if !b.Pruned.IsZero() {
				in.Pruned++
			}
		}
		return s.mayImport(ctx, head, &in, ended)
	}})
	if err != nil {
		return Imported{}, err
	}
	if err := s.importBodies(ctx, f); err != nil {
		return Imported{}, err
	}
	if in.Known {
		return in, nil
	}
	return in, s.importRun(ctx, f, head, &in)
}

// spool takes the file in, so that it can be read more than once.
func (s *SQLite) spool(ctx context.Context, r io.Reader) (*os.File, error) {
	f, err := os.CreateTemp(s.incoming(), "*")
	if err != nil {
		return nil, s.explain(err, "take in an export")
	}
	src := &source{ctx: ctx, r: r}
	n, err := io.Copy(f, io.LimitReader(src, s.limit+1))
	switch {
	case src.err != nil:
		err = fmt.Errorf("read the export: %w", src.err)
	case err != nil:
		err = s.explain(err, "take in an export")
	case n > s.limit:
		err = notExport(errTooLarge, "it has more than %d bytes", s.limit)
	}
	if err != nil {
		_ = f.Close() // nothing of it is used
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	return f, nil
}

func (s *SQLite) reread(ctx context.Context, f *os.File, take unpacked) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return s.explain(err, "read the export again")
	}
	return unpack(ctx, f, s.limit, take)
}

// mayImport compares the file with what is here.
func (s *SQLite) mayImport(ctx context.Context, m manifest, in *Imported, ended []string) error {
	if in.Run.Ended.IsZero() || !slices.Contains(ended, in.Run.State) {
		return apierr.New(apierr.InvalidArgument, "run %s had not ended when it was exported: it would go on in two places", m.Run).
			WithNext("export it again when it has ended", "read the file as it is: tar -xzf FILE")
	}
	here, err := s.Head(ctx, m.Run)
	if apierr.CodeOf(err) == apierr.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if here != (Head{m.Events, m.Head}) {
		return apierr.New(apierr.Conflict, "there is another run %s here, with %d events; the file has %d", m.Run, here.Seq, m.Events).
			WithNext("loopkeeper show " + m.Run)
	}
	in.Known = true
	return nil
}

// importBodies stores the bodies, small ones many at a time.
func (s *SQLite) importBodies(ctx context.Context, f *os.File) error {
	var c Commit
	var size int64
	flush := func() error {
		err := s.Append(ctx, c)
		c, size = Commit{}, 0
		return err
	}
	err := s.reread(ctx, f, unpacked{body: func(a Artifact, r io.Reader) error {
		if a.Size > InlineLimit {
			_, err := s.PutArtifact(ctx, a.Name, r)
			return err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return notExport(err, "%s cannot be read", a.SHA256)
		}
		c.Bodies = append(c.Bodies, Body{Name: a.Name, Data: data})
		if size += a.Size; size < 4<<20 && len(c.Bodies) < eventPage {
			return nil
		}
		return flush()
	}})
	if err != nil {
		return err
	}
	return flush()
}

// importRun writes everything else in one transaction, without holding the events in memory.
func (s *SQLite) importRun(ctx context.Context, f *os.File, m manifest, in *Imported) error {
	return s.writing(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var end chainEnd
		err := s.reread(ctx, f, unpacked{
			begin: func(_ manifest, row RunRow, bodies []archivedBody) error {
				if row.Key != "" {
					err := tx.StmtContext(ctx, s.stmts.keyOwner).QueryRowContext(ctx, row.Key, row.ID).Scan(&in.KeyOwner)
					if err != nil && !errors.Is(err, sql.ErrNoRows) {
						return fmt.Errorf("look up the key of run %s: %w", row.ID, err)
					}
					if in.KeyOwner != "" {
						row.Key, in.Run.Key = "", ""
					}
				}
				if err := insertPruned(ctx, tx, bodies); err != nil {
					return err
				}
				return s.insertRun(ctx, tx, row, end)
			},
			event: func(e Event) error {
				var values []any
				end, values = appendEvent(nil, end, e)
				return s.stmts.putEvents.insert(ctx, tx, values)
			},
			decision: func(d Decision) error { return s.insertDecisions(ctx, tx, []Decision{d}) },
		})
		if err != nil {
			return err
		}
		if hex.EncodeToString(end.hash) != m.Head {
			return apierr.New(apierr.Internal, "the copy of the export changed while it was imported")
		}
		return s.setEnd(ctx, tx, m.Run, end)
	})
}

// insertPruned notes what had been pruned where the run comes from, unless it is here.
func insertPruned(ctx context.Context, tx *sql.Tx, bodies []archivedBody) error {
	for _, b := range bodies {
		if b.Pruned.IsZero() {
			continue
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO artifact (sha256, size, name, body, pruned) VALUES (?, ?, ?, NULL, ?) ON CONFLICT (sha256) DO NOTHING`,
			b.SHA256, b.Size, b.Name, formatTime(b.Pruned))
		if err != nil {
			return fmt.Errorf("note that artifact %s was pruned: %w", b.SHA256, err)
		}
	}
	return nil
}
