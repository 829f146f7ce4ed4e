package ledger

import (
	"context"
	"database/sql"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// applicationID marks the file as ours: "LOOP" in ASCII.
const applicationID = 0x4C4F4F50

// The schema's versions are the numbers of the files in migrations/, from 1 without gaps; user_version is the last applied.
//
//go:embed migrations/*.sql
var migrations embed.FS

// fills compute, after the script of their number, what SQL cannot.
var fills = map[int]func(context.Context, *sql.Tx) error{3: chainOldEvents}

// migrate looks before it writes: a foreign, damaged or newer file is left as it was found.
func (s *SQLite) migrate(ctx context.Context, from fs.FS) error {
	scripts, err := loadMigrations(from)
	if err != nil {
		return err
	}
	have, err := s.version(ctx)
	if err != nil {
		return s.explain(err, "read the ledger's version")
	}
	if have > len(scripts) {
		return apierr.New(apierr.LedgerTooNew, "the ledger %s has schema %d, this loopkeeper knows up to %d", s.path(), have, len(scripts)).
			WithNext("install the loopkeeper that wrote it, or a newer one", "choose another folder to start an empty ledger")
	}
	if _, err := os.Stat(filepath.Join(s.dir, artifactDir)); have == 0 && !s.made && err == nil {
		return s.emptied() // and not one whose first start was cut short: that folder is made last
	}
	// Only now, because it is written into the file. The first has no effect on a file that has pages; Prune then sees to it.
	if _, err := s.writer.ExecContext(ctx, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL"); err != nil {
		return s.explain(err, "switch the ledger to write-ahead logging")
	}
	if have == len(scripts) {
		return nil
	}
	if have > 0 {
		if err := s.copyBeforeMigration(ctx, have); err != nil {
			return err
		}
	}
	s.log.Info("migrating the ledger", "path", s.path(), "from", have, "to", len(scripts))
	return s.writing(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for i := have; i < len(scripts); i++ {
			if _, err := tx.ExecContext(ctx, scripts[i]); err != nil {
				return fmt.Errorf("migrate the ledger to schema %d: %w", i+1, err)
			}
			if fill := fills[i+1]; fill != nil {
				if err := fill(ctx, tx); err != nil {
					return fmt.Errorf("migrate the ledger to schema %d: %w", i+1, err)
				}
			}
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(scripts)))
		return err
	})
}

// loadMigrations returns the scripts in order.
func loadMigrations(from fs.FS) ([]string, error) {
	files, err := fs.ReadDir(from, "migrations")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	var scripts []string
	for i, f := range files {
		if prefix := fmt.Sprintf("%04d_", i+1); !strings.HasPrefix(f.Name(), prefix) {
			return nil, fmt.Errorf("migration %s must start with %s", f.Name(), prefix)
		}
		sql, err := fs.ReadFile(from, "migrations/"+f.Name())
		if err != nil {
			return nil, fmt.Errorf("read a migration: %w", err)
		}
		scripts = append(scripts, string(sql))
	}
	return scripts, nil
}

// version returns the schema's number, 0 for an empty file.
func (s *SQLite) version(ctx context.Context) (int, error) {
	var id, version, tables int
	err := s.writer.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`).Scan(&id, &version, &tables)
	if err != nil {
		return 0, err
	}
	if tables == 0 && id == 0 {
		return 0, nil
	}
	if id != applicationID || version < 1 {
		return 0, corrupt(s.dir, nil, "%s is an SQLite database of another program", s.path())
	}
	return version, nil
}

// checkFile refuses a file that is no SQLite database, and one that was cut short, which SQLite itself notices only when it
// needs the missing part. The header's layout is https://sqlite.org/fileformat.html §1.3.
func (s *SQLite) checkFile() error {
	f, err := os.Open(s.path())
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	head := make([]byte, 100)
	n, err := io.ReadFull(f, head)
	log, noLog := os.Stat(s.path() + "-wal")
	if n == 0 && err == io.EOF {
		if noLog == nil && log.Size() > 0 { // SQLite would throw the log away
			return s.emptied()
		}
		return nil // new
	}
	if err != nil || string(head[:16]) != "SQLite format 3\x00" {
		return corrupt(s.dir, nil, "%s is not a ledger", s.path())
	}
	if noLog == nil && log.Size() > 0 {
		return nil // after a crash the file may lag behind its log
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	pageSize := int64(binary.BigEndian.Uint16(head[16:]))
	if pageSize == 1 {
		pageSize = 64 << 10 // does not fit the field
	}
	if want := pageSize * int64(binary.BigEndian.Uint32(head[28:])); st.Size() < want {
		return corrupt(s.dir, nil, "the ledger %s was cut short: it has %d bytes of %d", s.path(), st.Size(), want)
	}
	return nil
}

func (s *SQLite) emptied() error {
	return corrupt(s.dir, nil, "the ledger %s was emptied: there was a ledger in its folder, and nothing is in the file", s.path())
}

// copyBeforeMigration leaves the old file beside the new one, so that going back to the older loopkeeper is a rename.
func (s *SQLite) copyBeforeMigration(ctx context.Context, version int) error {
	to := filepath.Join(s.dir, fmt.Sprintf("ledger.db.schema-%d", version))
	if err := s.copyDatabase(ctx, s.writer, to+".partial"); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(to+".partial", to), syncDir(s.dir)); err != nil {
		return s.explain(err, "copy the ledger before migrating it")
	}
	s.log.Info("kept a copy of the ledger", "path", to)
	return nil
}

// copyDatabase writes a consistent copy of the database to a new file, owner-only and durable.
func (s *SQLite) copyDatabase(ctx context.Context, from *sql.DB, to string) error {
	// SQLite accepts an empty file, and would itself make one that others may read.
	f, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return s.explain(err, "make a copy of the ledger")
	}
	_, err = from.ExecContext(ctx, "VACUUM INTO ?", to)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return s.explain(err, "copy the ledger")
	}
	return nil
}
