package ledger

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Backup implements Store. The folder gets its name when it is complete and durable, never before.
func (s *SQLite) Backup(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); err == nil {
		return apierr.New(apierr.Conflict, "%s exists already", path).WithNext("choose a folder that does not exist")
	}
	s.copying.RLock()
	defer s.copying.RUnlock()
	partial := path + ".partial"
	if err := os.MkdirAll(filepath.Join(partial, artifactDir), 0o700); err != nil {
		return explainAt(partial, err, "make the backup's folder")
	}
	err := s.backupInto(ctx, partial)
	if err == nil {
		err = errors.Join(os.Rename(partial, path), syncDir(filepath.Dir(path)))
	}
	if err != nil {
		return errors.Join(explainAt(path, err, "back up the ledger"), os.RemoveAll(partial))
	}
	return nil
}

// backupInto copies the database first: every file that the copy names was durable before, and files never change.
func (s *SQLite) backupInto(ctx context.Context, dir string) error {
	to := filepath.Join(dir, "ledger.db")
	if err := s.copyDatabase(ctx, s.readers, to); err != nil {
		return err
	}
	db, err := sql.Open(modernc.driver, modernc.dsn(to, "mode=ro"))
	if err != nil {
		return err
	}
	rows, err := db.QueryContext(ctx, "SELECT sha256 FROM artifact WHERE body IS NULL AND pruned IS NULL")
	files, err := collect(s, rows, err, "list the backup's artifacts", func(rows *sql.Rows) (sha string, err error) {
		return sha, rows.Scan(&sha)
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	for _, sha := range files {
		if err := s.copyFile(ctx, sha, filepath.Join(dir, artifactDir, sha[:2], sha[2:])); err != nil {
			return err
		}
	}
	return errors.Join(syncDir(filepath.Join(dir, artifactDir)), syncDir(dir))
}

func (s *SQLite) copyFile(ctx context.Context, sha, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(s.copyBody(ctx, sha, f), f.Sync(), f.Close(), syncDir(filepath.Dir(to)))
}
