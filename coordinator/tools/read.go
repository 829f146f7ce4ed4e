package tools

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"time"
)

// files is what the file tools share.
type files struct {
	spaces *workspaces
	bodies Bodies
	paths  *locks // of files that are being replaced
}

type fileRead struct{ files }

// Describe implements Tool.
func (fileRead) Describe() Description {
	return Description{
		Name: "file.read", Summary: "Stores a file of a workspace as a body and returns a reference to it.", Effect: None,
		Input: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["path"],"properties":{
			"workspace":{"type":"string"},"path":{"type":"string","minLength":1}}}`),
		Output: json.RawMessage(`{"type":"object","required":["workspace","path","modified","body"],"properties":{
			"workspace":{"type":"string"},"path":{"type":"string"},"modified":{"type":"string","format":"date-time"},
			"body":{"type":"object","required":["ref","name","bytes"]}}}`),
	}
}

// Before implements Tool.
func (fileRead) Before(context.Context, Call) ([]Evidence, error) { return nil, nil }

// Do implements Tool.
func (t fileRead) Do(ctx context.Context, call Call, _ []Evidence) (Outcome, error) {
	in, err := decode[struct{ Workspace, Path string }](call)
	if err != nil {
		return Outcome{}, err
	}
	s, name, err := t.at(call.Tool, in.Workspace, in.Path)
	if err != nil {
		return Outcome{}, err
	}
	f, info, err := s.open(call.Tool, name)
	if err != nil {
		return Outcome{}, err
	}
	defer f.Close() //nolint:errcheck // only read
	ref, err := t.bodies.Put(ctx, filepath.Base(name), &limited{r: f, tool: call.Tool, name: name, space: s})
	if err != nil {
		return Outcome{}, wrap(ctx, call.Tool, "store", s.place(name), err)
	}
	return Outcome{
		Value: encode(struct {
			Workspace string    `json:"workspace"`
			Path      string    `json:"path"`
			Modified  time.Time `json:"modified"`
			Body      Ref       `json:"body"`
		}{s.Name, slash(name), info.ModTime().UTC(), ref}),
		After: []Evidence{{Kind: FileEvidence, Workspace: s.Name, Path: slash(name), Exists: true, SHA256: ref.SHA256, Bytes: ref.Bytes}},
	}, nil
}

// Check implements Tool.
func (fileRead) Check(context.Context, Call, []Evidence) (Checked, error) {
	return Checked{State: NotDone}, nil
}

// at finds the workspace and the path of a call.
func (t files) at(tool, workspace, path string) (*space, string, error) {
	s, err := t.spaces.find(tool, workspace)
	if err != nil {
		return nil, "", err
	}
	name, err := within(tool, path)
	return s, name, err
}

// wrap leaves the caller's own end as it is and explains everything else.
func wrap(ctx context.Context, tool, doing, place string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return explain(tool, doing, place, err)
}

// limited reads a file that may grow meanwhile, up to the limit of its workspace.
type limited struct {
	r     io.Reader
	read  int64
	tool  string
	name  string
	space *space
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.read += int64(n); l.read > l.space.MaxBytes {
		return n, l.space.tooLarge(l.tool, l.name, l.read)
	}
	return n, err
}
