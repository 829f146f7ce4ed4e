package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Primary result codes of SQLite, https://sqlite.org/rescode.html.
const (
	sqliteReadOnly = 8
	sqliteIOErr    = 10
	sqliteCorrupt  = 11
	sqliteFull     = 13
	sqliteCantOpen = 14
	sqliteNotADB   = 26
)

// resultCode returns the primary SQLite result code in err's chain, or 0.
func resultCode(err error) int {
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		return coded.Code() & 0xff
	}
	return 0
}

func isDiskFailure(err error) bool {
	code := resultCode(err)
	return code == sqliteIOErr || code == sqliteCorrupt
}

func (s *SQLite) explain(err error, doing string) error { return explainAt(s.dir, err, doing) }

// explainAt turns an error of the database or the file system below dir into one that says what to do. An error that
// already does comes back as it is, nil as nil.
func explainAt(dir string, err error, doing string) error {
	var done *apierr.Error
	if err == nil || errors.As(err, &done) {
		return err
	}
	wrap := func(code apierr.Code, next ...string) error {
		return apierr.Wrap(err, code, "%s in %s", doing, dir).WithNext(next...)
	}
	switch code := resultCode(err); {
	case code == sqliteCorrupt || code == sqliteNotADB:
		return corrupt(dir, err, "the ledger %s is damaged or not a ledger", filepath.Join(dir, "ledger.db"))
	case code == sqliteFull || errors.Is(err, syscall.ENOSPC):
		return wrap(apierr.Unavailable, "free some space on the disk that holds "+dir, "start again with the ledger on another disk")
	case code == sqliteReadOnly || code == sqliteCantOpen || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return wrap(apierr.Unavailable, "let the user that runs the coordinator read and write "+dir, "choose another folder for the ledger")
	case code == sqliteIOErr || isPathError(err):
		return wrap(apierr.Unavailable, "check the disk that holds "+dir+" and the system log", "choose another folder for the ledger")
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func isPathError(err error) bool {
	var pe *fs.PathError
	var le *os.LinkError
	return errors.As(err, &pe) || errors.As(err, &le)
}

// corrupt says that what is stored is not what was written, and how to go on.
func corrupt(dir string, cause error, format string, args ...any) *apierr.Error {
	bad := dir + ".damaged"
	e := apierr.New(apierr.LedgerCorrupt, format, args...)
	e.Cause = cause
	return e.WithNext(
		"stop the coordinator and keep what there is: mv "+dir+" "+bad,
		"put a backup in its place: cp -a BACKUP "+dir,
		"without a backup, save what can be read, with an sqlite3 shell that has .recover: mkdir -m 700 "+dir+" && sqlite3 "+filepath.Join(bad, "ledger.db")+
			" .recover | sqlite3 "+filepath.Join(dir, "ledger.db")+" && cp -a "+filepath.Join(bad, artifactDir)+" "+dir,
		"or start with an empty ledger: the damaged one is not touched",
	)
}
