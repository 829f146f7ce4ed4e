package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// KeepLimit is up to which size, in bytes, the former content of a file is kept so that a write can be undone.
const KeepLimit = 64 << 20

// newFileMode is that of files that did not exist; others keep theirs.
const newFileMode = 0o644

type fileWrite struct{ files }

// Describe implements Tool.
func (fileWrite) Describe() Description {
	return Description{
		Name: "file.write", Summary: "Writes a file of a workspace, whole or not at all.", Effect: Local, Undoable: true, Verifiable: true,
		Verify: "compare the SHA-256 of the file with the one in the evidence",
		Input: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["path","body"],"properties":{
			"workspace":{"type":"string"},"path":{"type":"string","minLength":1},
			"body":{"description":"a text, a reference {ref, name, bytes}, or any other value, which is written as canonical JSON"},
			"folders":{"type":"boolean","description":"make the folders of the path"},
			"replaces":{"type":"string","pattern":"^([0-9a-f]{64}|nothing)$","description":"the SHA-256 of the content that is replaced, or nothing: refuse if it is another"}}}`),
		Output: json.RawMessage(`{"type":"object","required":["workspace","path","sha256","bytes","created","changed"],"properties":{
			"workspace":{"type":"string"},"path":{"type":"string"},"sha256":{"type":"string"},"bytes":{"type":"integer"},
			"created":{"type":"boolean"},"changed":{"type":"boolean"}}}`),
	}
}

type writeInput struct {
	Workspace string          `json:"workspace"`
	Path      string          `json:"path"`
	Body      json.RawMessage `json:"body"`
	Folders   bool            `json:"folders"`
	Replaces  string          `json:"replaces"`
}

// write is a call of file.write whose parts have been found.
type write struct {
	fileWrite
	tool   string
	key    string
	in     writeInput
	space  *space
	name   string
	text   []byte // the content, where ref is nil
	ref    *Ref
	wanted string // SHA-256 of the content
}

func (t fileWrite) parse(call Call) (*write, error) {
	in, err := decode[writeInput](call)
	if err != nil {
		return nil, err
	}
	w := &write{fileWrite: t, tool: call.Tool, key: call.Key, in: in}
	if w.space, w.name, err = t.at(call.Tool, in.Workspace, in.Path); err != nil {
		return nil, err
	}
	if !w.space.Write {
		return nil, failed(NotAllowed, "%s: the workspace %s is only read", call.Tool, w.space.Name).
			next(fmt.Sprintf("set workspaces.%s.write in the settings, or name another workspace", w.space.Name))
	}
	if w.name == "." {
		return nil, failed(NotAFile, "%s: input.path: %q is the workspace itself", call.Tool, in.Path).next("name a file within it")
	}
	w.text, w.ref = content(in.Body)
	if w.ref != nil {
		w.wanted = w.ref.SHA256
	} else {
		w.wanted = digest(w.text)
	}
	return w, nil
}

// content returns what a body says, or the reference that names it.
func content(body json.RawMessage) ([]byte, *Ref) {
	var text *string
	if json.Unmarshal(body, &text) == nil && text != nil {
		return []byte(*text), nil
	}
	var ref Ref
	if json.Unmarshal(body, &ref) == nil && len(ref.SHA256) == 2*sha256.Size {
		return nil, &ref
	}
	return body, nil
}

// Before implements Tool: what the file is now, and its content where that is small enough to be kept.
func (t fileWrite) Before(ctx context.Context, call Call) ([]Evidence, error) {
	w, err := t.parse(call)
	if err != nil {
		return nil, err
	}
	if w.ref == nil && int64(len(w.text)) > w.space.MaxBytes {
		return nil, w.space.tooLarge(w.tool, w.name, int64(len(w.text)))
	}
	now, err := w.look(ctx, true)
	if err != nil {
		return nil, err
	}
	if want := w.in.Replaces; want != "" && want != contentName(now) {
		return nil, failed(Conflict, "%s: input.replaces: %s holds %s, not %s", w.tool, w.space.place(w.name), contentName(now), want).
			next("read the file again and decide anew")
	}
	return []Evidence{now}, nil
}

func contentName(e Evidence) string {
	if !e.Exists {
		return "nothing"
	}
	return e.SHA256
}

// look says what the file holds now. With keep, content up to KeepLimit is stored.
func (w *write) look(ctx context.Context, keep bool) (Evidence, error) {
	e := Evidence{Kind: FileEvidence, Workspace: w.space.Name, Path: slash(w.name)}
	info, err := w.space.root.Lstat(w.name)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, explain(w.tool, "look at", w.space.place(w.name), err)
	}
	if !info.Mode().IsRegular() {
		return e, failed(NotAFile, "%s: input.path: %s is a %s, and is not replaced", w.tool, w.space.place(w.name), kindOf(info.Mode())).
			next("name the file itself, or another path")
	}
	f, info, err := w.space.open(w.tool, w.name)
	if err != nil {
		return e, err
	}
	defer f.Close() //nolint:errcheck // only read
	e.Exists = true
	body := &limited{r: f, tool: w.tool, name: w.name, space: w.space}
	if keep && info.Size() <= KeepLimit {
		ref, err := w.bodies.Put(ctx, filepath.Base(w.name), body)
		if err != nil {
			return e, wrap(ctx, w.tool, "keep", w.space.place(w.name), err)
		}
		e.SHA256, e.Bytes, e.Body = ref.SHA256, ref.Bytes, &ref
		return e, nil
	}
	sum := sha256.New()
	if e.Bytes, err = io.Copy(sum, canceled{ctx, body}); err != nil {
		return e, wrap(ctx, w.tool, "read", w.space.place(w.name), err)
	}
	e.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return e, nil
}

// Do implements Tool.
func (t fileWrite) Do(ctx context.Context, call Call, before []Evidence) (Outcome, error) {
	w, err := t.parse(call)
	if err != nil {
		return Outcome{}, err
	}
	if contentName(before[0]) == w.wanted {
		return w.done(before[0], before[0].Bytes, nil), nil // whoever watches the file is not told of a change that is none
	}
	if w.in.Folders {
		if err := w.makeFolders(); err != nil {
			return Outcome{}, err
		}
	}
	temp, bytes, err := w.stage(ctx)
	if err != nil {
		return Outcome{}, err
	}
	out, err := w.place(ctx, temp, bytes, before[0])
	if err != nil {
		_ = w.space.root.Remove(temp) // where it has been placed, there is none
	}
	return out, err
}

// place gives the staged content its name, if the file still holds what before says.
func (w *write) place(ctx context.Context, temp string, bytes int64, before Evidence) (Outcome, error) {
	defer w.paths.lock(w.space.place(w.name))()
	now, err := w.look(ctx, false)
	if err != nil {
		return Outcome{}, err
	}
	if contentName(now) != contentName(before) {
		return Outcome{}, failed(Conflict, "%s: %s was changed by somebody else meanwhile", w.tool, w.space.place(w.name)).
			next("read the file again and decide anew").again()
	}
	after := w.space.difference(w.name, temp, now)
	if err := w.space.root.Rename(temp, w.name); err != nil {
		return Outcome{}, explain(w.tool, "write", w.space.place(w.name), err)
	}
	if err := syncFolder(w.space.root, filepath.Dir(w.name)); err != nil {
		return Outcome{}, failed(EffectUnsure, "%s: %s was written, and may be lost with the power: %v", w.tool, w.space.place(w.name), err)
	}
	return w.done(now, bytes, after), nil
}

// done is the outcome of a write that replaced before.
func (w *write) done(before Evidence, bytes int64, more []Evidence) Outcome {
	after := Evidence{Kind: FileEvidence, Workspace: w.space.Name, Path: slash(w.name), Exists: true, SHA256: w.wanted, Bytes: bytes}
	return Outcome{
		Value: encode(struct {
			Workspace string `json:"workspace"`
			Path      string `json:"path"`
			SHA256    string `json:"sha256"`
			Bytes     int64  `json:"bytes"`
			Created   bool   `json:"created"`
			Changed   bool   `json:"changed"`
		}{w.space.Name, slash(w.name), w.wanted, bytes, !before.Exists, contentName(before) != w.wanted}),
		After: append([]Evidence{after}, more...),
	}
}

// Check implements Tool: it compares what the file holds with what it held and with what it should hold.
func (t fileWrite) Check(ctx context.Context, call Call, before []Evidence) (Checked, error) {
	w, err := t.parse(call)
	if err != nil {
		return Checked{}, err
	}
	now, err := w.look(ctx, false)
	if err != nil {
		return Checked{}, err
	}
	place := w.space.place(w.name)
	switch {
	case contentName(now) == w.wanted && len(before) > 0:
		out := w.done(before[0], now.Bytes, nil)
		return Checked{State: Done, Outcome: &out, Why: place + " holds what was to be written"}, nil
	case len(before) == 0 || contentName(now) == contentName(before[0]):
		return Checked{State: NotDone, Why: place + " is as it was before the call"}, nil
	default:
		return Checked{State: Unknown, Why: fmt.Sprintf("%s held %s before the call, should hold %s, and holds %s: somebody else wrote it meanwhile",
			place, contentName(before[0]), w.wanted, contentName(now))}, nil
	}
}

// makeFolders makes the folders of the path, durably.
func (w *write) makeFolders() error {
	folder := filepath.Dir(w.name)
	if err := w.space.root.MkdirAll(folder, 0o755); err != nil {
		return explain(w.tool, "make the folder", w.space.place(folder), err)
	}
	for folder != "." {
		folder = filepath.Dir(folder)
		if err := syncFolder(w.space.root, folder); err != nil {
			return explain(w.tool, "make the folder", w.space.place(folder), err)
		}
	}
	return nil
}
