package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

const artifactDir = "artifacts"

// artifacts is the folder of the files of large bodies.
func (s *SQLite) artifacts() string { return filepath.Join(s.dir, artifactDir) }

// incoming holds files that have no name yet.
func (s *SQLite) incoming() string { return filepath.Join(s.artifacts(), "incoming") }

// file is where a large body lies.
func (s *SQLite) file(sha string) string {
	return filepath.Join(s.artifacts(), sha[:2], sha[2:])
}

// placed is an artifact whose bytes are at hand: here, or in a durable file.
type placed struct {
	Artifact
	inline []byte // nil when the body is a file
}

func inline(name string, data []byte) placed {
	if data == nil {
		data = []byte{} // nil would say that the body is a file
	}
	return placed{Artifact{SHA256: Digest(data), Size: int64(len(data)), Name: name}, data}
}

// restored is how old the note of when a body was stored must be to be made new: prune goes by days.
const restored = 24 * time.Hour

func (p placed) insert(ctx context.Context, tx *sql.Tx, st *statements) error {
	var body any
	if p.inline != nil {
		body = p.inline
	}
	now := time.Now()
	_, err := tx.StmtContext(ctx, st.putArtifact).ExecContext(ctx, p.SHA256, p.Size, p.Name, body, formatTime(now), formatTime(now.Add(-restored)))
	if err != nil {
		return fmt.Errorf("write artifact %s: %w", p.SHA256, err)
	}
	return nil
}

// PutArtifact implements Store.
func (s *SQLite) PutArtifact(ctx context.Context, name string, r io.Reader) (Artifact, error) {
	in, err := s.takeIn(ctx, name, r)
	if err != nil {
		return Artifact{}, err
	}
	s.bodies.RLock()
	defer s.bodies.RUnlock()
	p, err := s.place(in)
	if err != nil {
		return Artifact{}, err
	}
	err = s.writing(ctx, func(ctx context.Context, tx *sql.Tx) error { return p.insert(ctx, tx, &s.stmts) })
	return p.Artifact, err
}

// placeBodies needs s.bodies, until their rows are there.
func (s *SQLite) placeBodies(ctx context.Context, bodies []Body) ([]placed, error) {
	out := make([]placed, 0, len(bodies))
	for _, b := range bodies {
		p := inline(b.Name, b.Data)
		if len(b.Data) > InlineLimit {
			in, err := s.takeIn(ctx, b.Name, bytes.NewReader(b.Data))
			if err == nil {
				p, err = s.place(in)
			}
			if err != nil {
				return nil, err
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// taken is a body that was taken in, and has no name yet.
type taken struct {
	placed
	file bodyFile // nil when it is inline
}

// takeIn reads a body to its end: a large one into a file.
func (s *SQLite) takeIn(ctx context.Context, name string, r io.Reader) (taken, error) {
	src := &source{ctx: ctx, r: r}
	head, err := io.ReadAll(io.LimitReader(src, InlineLimit+1))
	if err != nil {
		return taken{}, fmt.Errorf("read the body of artifact %q: %w", name, err)
	}
	if len(head) <= InlineLimit {
		return taken{placed: inline(name, head)}, nil
	}
	f, err := s.files.create(s.incoming())
	if err != nil {
		return taken{}, s.explain(err, "store artifact "+name)
	}
	in := taken{file: f}
	sum := sha256.New()
	in.Size, err = io.Copy(io.MultiWriter(f, sum), io.MultiReader(bytes.NewReader(head), src))
	if err == nil {
		in.SHA256, in.Name = hex.EncodeToString(sum.Sum(nil)), name
		return in, nil
	}
	dropped := s.discard(f)
	if src.err != nil {
		return taken{}, errors.Join(fmt.Errorf("read the body of artifact %q: %w", name, src.err), dropped)
	}
	return taken{}, s.explain(errors.Join(err, dropped), "store artifact "+name)
}

// place gives a file its durable name, unless it is there and right: a row that names it may follow. It needs s.bodies, lest the
// file that is there is pruned before that.
func (s *SQLite) place(in taken) (placed, error) {
	if in.file == nil {
		return in.placed, nil
	}
	sound, err := s.fileIsSound(in.SHA256)
	if err == nil && sound {
		return in.placed, s.explain(s.discard(in.file), "store artifact "+in.Name)
	}
	if err == nil {
		err = in.file.Sync()
	}
	if err != nil {
		return placed{}, s.explain(errors.Join(err, s.discard(in.file)), "store artifact "+in.Name)
	}
	err = in.file.Close()
	if err == nil {
		err = s.rename(in.file.Name(), s.file(in.SHA256))
	}
	if err != nil {
		return placed{}, s.explain(errors.Join(err, ignoreMissing(s.files.remove(in.file.Name()))), "store artifact "+in.Name)
	}
	return in.placed, nil
}

func (s *SQLite) discard(f bodyFile) error { return errors.Join(f.Close(), s.files.remove(f.Name())) }

// rename gives a synced file its durable name.
func (s *SQLite) rename(from, to string) error {
	folder := filepath.Dir(to)
	if err := s.files.mkdir(folder); err != nil {
		return err
	}
	if err := s.files.rename(from, to); err != nil {
		return err
	}
	return errors.Join(s.files.syncDir(folder), s.files.syncDir(filepath.Dir(folder)))
}

// fileIsSound says whether the file of sha is there and right, so that storing it again need not write.
func (s *SQLite) fileIsSound(sha string) (bool, error) {
	f, err := s.files.open(s.file(sha))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() //nolint:errcheck // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return false, err
	}
	return hex.EncodeToString(sum.Sum(nil)) == sha, nil
}

// OpenArtifact implements Store.
func (s *SQLite) OpenArtifact(ctx context.Context, sha string) (io.ReadCloser, Artifact, error) {
	p, err := s.lookUp(ctx, sha)
	if err == nil {
		err = p.gone()
	}
	if err != nil {
		return nil, p.Artifact, err
	}
	if p.inline != nil {
		if Digest(p.inline) != sha {
			return nil, p.Artifact, corrupt(s.dir, nil, "artifact %s is not what was stored", sha)
		}
		return io.NopCloser(bytes.NewReader(p.inline)), p.Artifact, nil
	}
	f, err := s.openFile(sha)
	if err != nil {
		return nil, p.Artifact, err
	}
	return &verifier{f: f, want: p.Artifact, sum: sha256.New(), dir: s.dir}, p.Artifact, nil
}

func (s *SQLite) openFile(sha string) (bodyFile, error) {
	f, err := s.files.open(s.file(sha))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, corrupt(s.dir, err, "the file of artifact %s is gone", sha)
	}
	return f, s.explain(err, "open artifact "+sha)
}

// ReadArtifactAt implements Store.
func (s *SQLite) ReadArtifactAt(ctx context.Context, sha string, off int64, n int) ([]byte, error) {
	p, err := s.lookUp(ctx, sha)
	if err == nil {
		err = p.gone()
	}
	if err != nil {
		return nil, err
	}
	if off < 0 || off > p.Size || n < 0 {
		return nil, apierr.New(apierr.InvalidArgument, "artifact %s has %d bytes, so there are no %d from byte %d", sha, p.Size, n, off)
	}
	n = int(min(int64(n), p.Size-off))
	if p.inline != nil {
		return append([]byte{}, p.inline[off:off+int64(n)]...), nil
	}
	f, err := s.openFile(sha)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	part := make([]byte, n)
	_, err = io.ReadFull(io.NewSectionReader(f, off, int64(n)), part)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, corrupt(s.dir, err, "the file of artifact %s was cut short", sha)
	}
	return part, s.explain(err, "read artifact "+sha)
}

// HasArtifact implements Store.
func (s *SQLite) HasArtifact(ctx context.Context, sha string) (bool, error) {
	p, err := s.lookUp(ctx, sha)
	if apierr.CodeOf(err) == apierr.NotFound {
		return false, nil
	}
	if err != nil || p.inline != nil || !p.Pruned.IsZero() {
		return err == nil && p.Pruned.IsZero(), err
	}
	size, err := s.files.size(s.file(sha))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && size == p.Size, s.explain(err, "look for artifact "+sha)
}

// StatArtifact implements Store.
func (s *SQLite) StatArtifact(ctx context.Context, sha string) (Artifact, error) {
	p, err := s.lookUp(ctx, sha)
	return p.Artifact, err
}

func (s *SQLite) lookUp(ctx context.Context, sha string) (placed, error) {
	if !isDigest(sha) {
		return placed{}, apierr.New(apierr.InvalidArgument, "%q is no SHA-256 in lower-case hex", sha)
	}
	p := placed{Artifact: Artifact{SHA256: sha}}
	var pruned sql.NullString
	err := s.stmts.artifact.QueryRowContext(ctx, sha).Scan(&p.Size, &p.Name, &p.inline, &pruned)
	if errors.Is(err, sql.ErrNoRows) {
		return p, apierr.New(apierr.NotFound, "there is no artifact %s", sha)
	}
	if err == nil && pruned.Valid {
		p.Pruned, err = s.parseTime(pruned.String)
	} else if p.inline == nil && p.Size == 0 {
		p.inline = []byte{} // drivers hand out an empty blob as nil; no file is empty
	}
	return p, s.explain(err, "look up artifact "+sha)
}

// gone is the error that says when the body was dropped, or nil.
func (p placed) gone() error {
	if p.Pruned.IsZero() {
		return nil
	}
	return apierr.New(apierr.NotFound, "artifact %s (%d bytes) was pruned on %s", p.SHA256, p.Size, p.Pruned.Format(time.DateOnly)).
		WithNext("store the same bytes again", "import an export of its run that was made before that day")
}

func isDigest(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}

// source notes its own error and its caller's, so that neither is taken for one of our disk.
type source struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err = s.ctx.Err(); s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// verifier reads a file and, at its end, refuses what was not stored.
type verifier struct {
	f    bodyFile
	want Artifact
	sum  hash.Hash
	dir  string
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.f.Read(p)
	v.sum.Write(p[:n])
	if err == io.EOF && hex.EncodeToString(v.sum.Sum(nil)) != v.want.SHA256 {
		return n, corrupt(v.dir, nil, "artifact %s is not what was stored", v.want.SHA256)
	}
	return n, err
}

func (v *verifier) Close() error { return v.f.Close() }
