package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		victim()
		return
	}
	goleak.VerifyTestMain(m)
}

// folder is an artifact store in a folder.
type folder struct{ dir string }

func (f folder) Open(_ context.Context, sha string) (io.ReadCloser, int64, error) {
	file, err := os.Open(filepath.Join(f.dir, sha))
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	return file, info.Size(), err
}

func (f folder) Put(_ context.Context, name string, r io.Reader) (Ref, error) {
	temp, err := os.CreateTemp(f.dir, "incoming*")
	if err != nil {
		return Ref{}, err
	}
	defer temp.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(temp, sum), r)
	if err != nil {
		return Ref{}, err
	}
	ref := Ref{SHA256: hex.EncodeToString(sum.Sum(nil)), Name: name, Bytes: n}
	return ref, os.Rename(temp.Name(), filepath.Join(f.dir, ref.SHA256))
}

// notes are records in a folder, one file each; saved may interfere after a record was stored.
type notes struct {
	dir   string
	mu    sync.Mutex
	saved func(Record) error
}

func (n *notes) Record(_ context.Context, key string) (Record, bool, error) {
	data, err := os.ReadFile(filepath.Join(n.dir, digest([]byte(key))))
	if errors.Is(err, os.ErrNotExist) {
		return Record{}, false, nil
	}
	var r Record
	return r, err == nil, errors.Join(err, json.Unmarshal(data, &r))
}

func (n *notes) SaveRecord(_ context.Context, r Record) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := os.WriteFile(filepath.Join(n.dir, digest([]byte(r.Key))), encode(r), 0o600); err != nil || n.saved == nil {
		return err
	}
	return n.saved(r)
}

// rig is a registry over one writable workspace.
type rig struct {
	*Registry
	t      *testing.T
	dir    string // of the workspace
	bodies folder
	notes  *notes
}

func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), bodies: folder{t.TempDir()}, notes: &notes{dir: t.TempDir()}}
	opts := Options{
		Workspaces: []Workspace{{Name: "work", Dir: r.dir, Write: true}},
		Bodies:     r.bodies, Records: r.notes,
	}
	for _, c := range change {
		c(&opts)
	}
	var err error
	if r.Registry, err = New(opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) call(key, tool, input string) Call {
	return Call{Key: key, Tool: tool, Input: json.RawMessage(input)}
}

// run does a call whose end must be known.
func (r *rig) run(key, tool, input string) Outcome {
	r.t.Helper()
	out, err := r.Run(r.t.Context(), r.call(key, tool, input))
	if err != nil {
		r.t.Fatalf("%s %s: %v", tool, input, err)
	}
	return out
}

// value does a call that must succeed and returns its value.
func (r *rig) value(key, tool, input string) map[string]any {
	r.t.Helper()
	out := r.run(key, tool, input)
	if out.Failure != nil {
		r.t.Fatalf("%s %s: %v", tool, input, out.Failure)
	}
	var v map[string]any
	if err := json.Unmarshal(out.Value, &v); err != nil {
		r.t.Fatal(err)
	}
	return v
}

// refused does a call that must fail with a kind, and returns the failure.
func (r *rig) refused(key, tool, input, kind string) *Failure {
	r.t.Helper()
	out := r.run(key, tool, input)
	if out.Failure == nil || out.Failure.Kind != kind {
		r.t.Fatalf("%s %s: got %+v, want a failure of kind %s", tool, input, out, kind)
	}
	return out.Failure
}

func (r *rig) put(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) text(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

// names are the files of the workspace's top folder.
func (r *rig) names() []string {
	r.t.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
