package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// pagesAtOnce is how many free pages go back to the disk in one turn of the writer.
const pagesAtOnce = 2000

// incremental is the auto_vacuum mode in which free pages can be given back in parts, https://sqlite.org/pragma.html#pragma_auto_vacuum.
const incremental = 2

// freePages gives the pages that pruning freed back to the disk, a part at a time. A ledger that was made before they could be
// is rewritten whole once, which appends wait for.
func (s *SQLite) freePages(ctx context.Context) error {
	var mode int
	if err := s.readers.QueryRowContext(ctx, "PRAGMA auto_vacuum").Scan(&mode); err != nil {
		return s.explain(err, "look for free pages")
	}
	if mode != incremental {
		if err := s.tidy(ctx, "PRAGMA auto_vacuum = INCREMENTAL; VACUUM"); err != nil {
			return err
		}
	}
	for before := int64(-1); ; {
		var free int64
		if err := s.readers.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
			return s.explain(err, "look for free pages")
		}
		if free == 0 || free == before { // appends may free and use some meanwhile
			break
		}
		before = free
		if err := s.tidy(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", pagesAtOnce)); err != nil {
			return err
		}
	}
	return s.tidy(ctx, "PRAGMA wal_checkpoint(TRUNCATE)") // what is in the log is not in the database yet, the new size included
}

// tidy runs statements that cannot stand in a transaction. They work as their rows are read.
func (s *SQLite) tidy(ctx context.Context, statements string) error {
	return s.alone(ctx, func(ctx context.Context) error {
		rows, err := s.writer.QueryContext(ctx, statements)
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		return errors.Join(rows.Err(), rows.Close())
	})
}

// diskBytes is what the database, its log and the files of bodies take.
func (s *SQLite) diskBytes(ctx context.Context) (int64, error) {
	var files int64
	err := s.readers.QueryRowContext(ctx, "SELECT coalesce(sum(size), 0) FROM artifact WHERE body IS NULL AND pruned IS NULL").Scan(&files)
	for _, path := range []string{s.path(), s.path() + "-wal"} {
		st, statErr := os.Stat(path)
		if statErr == nil {
			files += st.Size()
		} else if !errors.Is(statErr, fs.ErrNotExist) {
			err = errors.Join(err, statErr)
		}
	}
	return files, s.explain(err, "measure the ledger")
}
