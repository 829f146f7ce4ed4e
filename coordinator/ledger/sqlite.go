package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Options says where a ledger is.
type Options struct {
	Dir string       // the ledger's folder, made if missing, owner-only
	Log *slog.Logger // nil discards

	ImportLimit int64 // bytes that Import unpacks at most; 0 is 64 GiB
}

// SQLite is the Store in one folder: ledger.db and the files of large artifacts. One coordinator at a time has it open.
type SQLite struct {
	dir     string
	log     *slog.Logger
	lock    *folderLock
	turn    chan struct{} // holds a token while somebody writes; guards closed and broken
	writer  *sql.DB       // one connection
	readers *sql.DB       // a few, read-only
	stmts   statements
	known   map[string]knownRow // rows of runs, guarded by turn
	files   drive
	bodies  sync.RWMutex // held for reading from the look at a file until its row is there, for writing to remove files
	copying sync.RWMutex // held for reading while bodies are copied out, for writing by Prune
	limit   int64        // bytes that an import may unpack to
	made    bool         // the file of the database was not there and was made by this open
	closed  bool
	broken  error // set once the disk has failed us: nothing more is acknowledged
}

var _ Store = (*SQLite)(nil)

// engine is the SQLite library that runs our statements. The crash tests put another in, which can lose power.
type engine struct {
	driver     string
	params     string // URI parameters of every connection, each followed by "&"
	oneConn    bool   // the library cannot share a database between connections
	files      drive
	migrations fs.FS // NNNN_name.sql, see migrate
}

var modernc = engine{driver: "sqlite", migrations: migrations, files: osDrive{}}

// writerParams make every commit durable before it is acknowledged, on macOS too, where a plain fsync stops at the drive's
// cache. EXTRA is FULL for the write-ahead log; besides, it makes the removal of a new file's first rollback journal
// durable, which could otherwise come back after a power cut and undo everything. The log is cut back to 64 MiB after a
// huge commit.
const writerParams = "_txlock=immediate&_pragma=foreign_keys(1)&_pragma=synchronous(EXTRA)" +
	"&_pragma=fullfsync(1)&_pragma=checkpoint_fullfsync(1)&_pragma=journal_size_limit(67108864)"

const readerConns = 4

// Open opens the ledger in o.Dir, makes it if there is none, and migrates an older one after copying it. LedgerTooNew,
// LedgerCorrupt: the file was written by a newer loopkeeper, or is damaged or not a ledger. Conflict: another coordinator
// has it open. Unavailable: the folder cannot be written.
func Open(ctx context.Context, o Options) (*SQLite, error) {
	return open(ctx, o, modernc)
}

// OpenWith is Open with another SQLite than ours, by the name of its database/sql driver and URI parameters of every connection, each
// followed by "&". It is for tests that put the database on a disk that fails; the files of large bodies stay the operating system's.
func OpenWith(ctx context.Context, o Options, driver, params string) (*SQLite, error) {
	return open(ctx, o, engine{driver: driver, params: params, oneConn: true, migrations: migrations, files: osDrive{}})
}

func open(ctx context.Context, o Options, eng engine) (*SQLite, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "find the ledger's folder %s", o.Dir)
	}
	s := &SQLite{dir: dir, log: o.Log, turn: make(chan struct{}, 1), files: eng.files, limit: cmp.Or(o.ImportLimit, importLimit),
		known: map[string]knownRow{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.prepareFolder(); err != nil {
		return nil, err
	}
	if s.lock, err = lockFolder(dir); err != nil {
		return nil, err
	}
	if err := s.openDatabase(ctx, eng); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepareFolder makes what must exist before the database is opened. SQLite itself does not sync the folder of a new
// database, and makes files that others may read.
func (s *SQLite) prepareFolder() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return s.explain(err, "make the ledger's folder")
	}
	f, err := os.OpenFile(s.path(), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if s.made = err == nil; s.made {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return s.explain(err, "make the ledger's file")
	}
	// Even when all exists: who made it may have died before this.
	return s.explain(errors.Join(syncDir(s.dir), syncDir(filepath.Dir(s.dir))), "make the ledger's folder durable")
}

func (s *SQLite) openDatabase(ctx context.Context, eng engine) (err error) {
	if err := s.checkFile(); err != nil {
		return s.explain(err, "look at the ledger's file")
	}
	if s.writer, err = sql.Open(eng.driver, eng.dsn(s.path(), writerParams)); err != nil {
		return s.explain(err, "open the ledger")
	}
	s.writer.SetMaxOpenConns(1)
	if err := s.migrate(ctx, eng.migrations); err != nil {
		return err
	}
	if err := s.prepareArtifacts(); err != nil {
		return s.explain(err, "prepare the folder for artifacts")
	}
	s.readers = s.writer
	if !eng.oneConn {
		if s.readers, err = sql.Open(eng.driver, eng.dsn(s.path(), "mode=ro")); err != nil {
			return s.explain(err, "open the ledger for reading")
		}
		s.readers.SetMaxOpenConns(readerConns)
		s.readers.SetMaxIdleConns(readerConns)
	}
	return s.explain(s.stmts.prepare(ctx, s.writer, s.readers), "read the ledger's tables")
}

// prepareArtifacts makes the folder for artifacts once the database has its tables, so that the folder says that there was a
// ledger. A half-written body of a coordinator that was killed has no name and no use.
func (s *SQLite) prepareArtifacts() error {
	return errors.Join(os.MkdirAll(s.incoming(), 0o700), s.files.clear(s.incoming()), syncDir(s.dir))
}

// dsn is path as an SQLite URI, whatever characters are in it.
func (e engine) dsn(path, params string) string {
	p := (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
	if runtime.GOOS == "windows" {
		p = "/" + p
	}
	return "file:" + p + "?" + e.params + "_pragma=busy_timeout(5000)&" + params
}

// Dir returns the ledger's folder, absolute.
func (s *SQLite) Dir() string { return s.dir }

func (s *SQLite) path() string { return filepath.Join(s.dir, "ledger.db") }

// Close waits for the writer, closes the files and lets another coordinator open the ledger.
func (s *SQLite) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	if s.readers != nil && s.readers != s.writer {
		errs = append(errs, s.readers.Close())
	}
	if s.writer != nil { // last: the last connection writes the log back into the database
		errs = append(errs, s.writer.Close())
	}
	errs = append(errs, s.lock.release())
	return s.explain(errors.Join(errs...), "close the ledger")
}

// writing runs do as the only writer, in a transaction that is durable when it returns nil.
func (s *SQLite) writing(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	return s.alone(ctx, func(ctx context.Context) error {
		err := s.transact(ctx, do)
		if err != nil {
			clear(s.known) // it was noted while it was written
		}
		return err
	})
}

// alone runs do as the only writer. It waits for its turn as long as ctx allows, and then finishes whatever ctx says: a commit that
// was interrupted would leave its caller guessing.
func (s *SQLite) alone(ctx context.Context, do func(context.Context) error) error {
	if ctx.Err() == nil { // select alone would toss a coin when both are ready
		select {
		case s.turn <- struct{}{}:
			defer func() { <-s.turn }()
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return apierr.Wrap(ctx.Err(), apierr.Cancelled, "wait to write the ledger")
	}
	if s.closed {
		return apierr.New(apierr.Unavailable, "the ledger is closed")
	}
	if s.broken != nil {
		return s.broken
	}
	err := s.explain(do(context.WithoutCancel(ctx)), "write the ledger")
	if isDiskFailure(err) {
		// After a failed sync the kernel may call the lost pages clean: a later success would prove nothing.
		s.broken = apierr.Wrap(err, apierr.Unavailable, "the ledger stopped when its disk failed").WithNext("restart loopkeeper when the disk is well")
	}
	return err
}

func (s *SQLite) transact(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(ctx, tx); err != nil {
		_ = tx.Rollback() // fails where SQLite has rolled back already, as on a full disk
		return err
	}
	return tx.Commit()
}
