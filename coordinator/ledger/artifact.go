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
	"os"
	"path/filepath"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

const artifactDir = "artifacts"

// incoming holds files that have no name yet.
func (s *SQLite) incoming() string { return filepath.Join(s.dir, artifactDir, "incoming") }

// file is where a large body lies.
func (s *SQLite) file(sha string) string {
	return filepath.Join(s.dir, artifactDir, sha[:2], sha[2:])
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

func (p placed) insert(ctx context.Context, tx *sql.Tx, st *statements) error {
	var body any
	if p.inline != nil {
		body = p.inline
	}
	if _, err := tx.StmtContext(ctx, st.putArtifact).ExecContext(ctx, p.SHA256, p.Size, p.Name, body); err != nil {
		return fmt.Errorf("write artifact %s: %w", p.SHA256, err)
	}
	return nil
}

// PutArtifact implements Store.
func (s *SQLite) PutArtifact(ctx context.Context, name string, r io.Reader) (Artifact, error) {
	p, err := s.place(ctx, name, r)
	if err != nil {
		return Artifact{}, err
	}
	err = s.writing(ctx, func(ctx context.Context, tx *sql.Tx) error { return p.insert(ctx, tx, &s.stmts) })
	return p.Artifact, err
}

func (s *SQLite) placeBodies(ctx context.Context, bodies []Body) ([]placed, error) {
	out := make([]placed, 0, len(bodies))
	for _, b := range bodies {
		if len(b.Data) <= InlineLimit {
			out = append(out, inline(b.Name, b.Data))
			continue
		}
		p, err := s.place(ctx, b.Name, bytes.NewReader(b.Data))
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// place takes in a body. A large one is durable under its final name when place returns: a row that names it may follow.
func (s *SQLite) place(ctx context.Context, name string, r io.Reader) (placed, error) {
	src := &source{ctx: ctx, r: r}
	head, err := io.ReadAll(io.LimitReader(src, InlineLimit+1))
	if err != nil {
		return placed{}, fmt.Errorf("read the body of artifact %q: %w", name, err)
	}
	if len(head) <= InlineLimit {
		return inline(name, head), nil
	}
	a, err := s.placeFile(io.MultiReader(bytes.NewReader(head), src))
	if src.err != nil {
		return placed{}, fmt.Errorf("read the body of artifact %q: %w", name, src.err)
	}
	if err != nil {
		return placed{}, s.explain(err, "store artifact "+name)
	}
	a.Name = name
	return placed{Artifact: a}, nil
}

func (s *SQLite) placeFile(r io.Reader) (a Artifact, err error) {
	tmp, err := os.CreateTemp(s.incoming(), "*")
	if err != nil {
		return a, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tmp.Close(), ignoreMissing(os.Remove(tmp.Name())))
		}
	}()
	sum := sha256.New()
	if a.Size, err = io.Copy(io.MultiWriter(tmp, sum), r); err != nil {
		return a, err
	}
	a.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if sound, err := s.fileIsSound(a.SHA256); err != nil || sound {
		return a, errors.Join(err, tmp.Close(), os.Remove(tmp.Name()))
	}
	if err := tmp.Sync(); err != nil {
		return a, err
	}
	if err := tmp.Close(); err != nil {
		return a, err
	}
	return a, s.rename(tmp.Name(), s.file(a.SHA256))
}

// rename gives a synced file its durable name.
func (s *SQLite) rename(from, to string) error {
	folder := filepath.Dir(to)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(syncDir(folder), syncDir(filepath.Dir(folder)))
}

// fileIsSound says whether the file of sha is there and right, so that storing it again need not write.
func (s *SQLite) fileIsSound(sha string) (bool, error) {
	f, err := os.Open(s.file(sha))
	if errors.Is(err, os.ErrNotExist) {
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
	if err != nil {
		return nil, Artifact{}, err
	}
	if p.inline != nil {
		if Digest(p.inline) != sha {
			return nil, p.Artifact, corrupt(s.dir, nil, "artifact %s is not what was stored", sha)
		}
		return io.NopCloser(bytes.NewReader(p.inline)), p.Artifact, nil
	}
	f, err := os.Open(s.file(sha))
	if errors.Is(err, os.ErrNotExist) {
		return nil, p.Artifact, corrupt(s.dir, err, "the file of artifact %s is gone", sha)
	}
	if err != nil {
		return nil, p.Artifact, s.explain(err, "open artifact "+sha)
	}
	return &verifier{f: f, want: p.Artifact, sum: sha256.New(), dir: s.dir}, p.Artifact, nil
}

// HasArtifact implements Store.
func (s *SQLite) HasArtifact(ctx context.Context, sha string) (bool, error) {
	p, err := s.lookUp(ctx, sha)
	if apierr.CodeOf(err) == apierr.NotFound {
		return false, nil
	}
	if err != nil || p.inline != nil {
		return err == nil, err
	}
	st, err := os.Stat(s.file(sha))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.Size() == p.Size, s.explain(err, "look for artifact "+sha)
}

func (s *SQLite) lookUp(ctx context.Context, sha string) (placed, error) {
	if len(sha) != 64 || strings.Trim(sha, "0123456789abcdef") != "" {
		return placed{}, apierr.New(apierr.InvalidArgument, "%q is no SHA-256 in lower-case hex", sha)
	}
	p := placed{Artifact: Artifact{SHA256: sha}}
	err := s.stmts.artifact.QueryRowContext(ctx, sha).Scan(&p.Size, &p.Name, &p.inline)
	if errors.Is(err, sql.ErrNoRows) {
		return p, apierr.New(apierr.NotFound, "there is no artifact %s", sha)
	}
	if p.inline == nil && p.Size == 0 {
		p.inline = []byte{} // drivers hand out an empty blob as nil; no file is empty
	}
	return p, s.explain(err, "look up artifact "+sha)
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
	f    *os.File
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

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
