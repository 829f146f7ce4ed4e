package tools

import (
	"context"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// defaultItems is how many entries a list has where the call does not say.
const defaultItems = 1000

type fileList struct{ files }

// Describe implements Tool.
func (fileList) Describe() Description {
	return Description{
		Name: "file.list", Summary: "Lists what is in a folder of a workspace, a page at a time, in a fixed order.", Effect: None,
		Input: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
			"workspace":{"type":"string"},"path":{"type":"string","minLength":1,"description":"a folder; left out: the workspace"},
			"pattern":{"type":"string","minLength":1,"description":"such as *.md; with a / it is matched against the whole path"},
			"recursive":{"type":"boolean"},"limit":{"type":"integer","minimum":1,"maximum":10000},
			"after":{"type":"string","description":"next of the page before"}}}`),
		Output: json.RawMessage(`{"type":"object","required":["workspace","items","next","unreadable"],"properties":{
			"workspace":{"type":"string"},"items":{"type":"array","items":{"type":"object","required":["path","kind","bytes","modified"]}},
			"next":{"type":["string","null"]},"unreadable":{"type":"array","items":{"type":"string"}}}}`),
	}
}

type listInput struct {
	Workspace string `json:"workspace"`
	Path      string `json:"path"`
	Pattern   string `json:"pattern"`
	Recursive bool   `json:"recursive"`
	Limit     int    `json:"limit"`
	After     string `json:"after"`
}

// listed is one entry; a link is listed and never followed.
type listed struct {
	Path     string    `json:"path"`
	Kind     string    `json:"kind"` // file, folder, link or other
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
}

// page is the value of file.list.
type page struct {
	Workspace  string   `json:"workspace"`
	Items      []listed `json:"items"`
	Next       *string  `json:"next"`       // null on the last page
	Unreadable []string `json:"unreadable"` // folders that could not be looked into: what is in them is missing here
}

// Before implements Tool.
func (fileList) Before(context.Context, Call) ([]Evidence, error) { return nil, nil }

// Check implements Tool.
func (fileList) Check(context.Context, Call, []Evidence) (Checked, error) {
	return Checked{State: NotDone}, nil
}

// Do implements Tool.
func (t fileList) Do(ctx context.Context, call Call, _ []Evidence) (Outcome, error) {
	in := listInput{Path: ".", Limit: defaultItems}
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return Outcome{}, failed(InvalidInput, "%s: the input does not fit: %v", call.Tool, err)
	}
	if _, err := path.Match(in.Pattern, ""); err != nil {
		return Outcome{}, failed(InvalidInput, "%s: input.pattern: %q is no pattern", call.Tool, in.Pattern).next("use * and ?, such as *.md")
	}
	s, name, err := t.at(call.Tool, in.Workspace, in.Path)
	if err != nil {
		return Outcome{}, err
	}
	info, err := s.root.Stat(name)
	if err != nil {
		return Outcome{}, explain(call.Tool, "list", s.place(name), err)
	}
	if !info.IsDir() {
		return Outcome{}, failed(NotAFile, "%s: input.path: %s is no folder", call.Tool, s.place(name)).next("name a folder")
	}
	w := walk{ctx: ctx, in: in, start: slash(name), page: page{Workspace: s.Name, Items: []listed{}, Unreadable: []string{}}}
	if err := fs.WalkDir(s.root.FS(), w.start, w.visit); err != nil {
		return Outcome{}, wrap(ctx, call.Tool, "list", s.place(name), err)
	}
	return Outcome{Value: encode(w.page)}, nil
}

// walk gathers one page.
type walk struct {
	ctx   context.Context
	in    listInput
	start string
	page  page
}

func (w *walk) visit(p string, entry fs.DirEntry, err error) error {
	if cerr := w.ctx.Err(); cerr != nil {
		return cerr
	}
	if err != nil {
		w.page.Unreadable = append(w.page.Unreadable, p)
		return nil
	}
	if p == w.start {
		return nil
	}
	if !w.done(p) && w.matches(p) {
		if len(w.page.Items) == w.in.Limit {
			w.page.Next = &w.page.Items[len(w.page.Items)-1].Path
			return fs.SkipAll
		}
		w.add(p, entry)
	}
	if entry.IsDir() && !w.in.Recursive {
		return fs.SkipDir
	}
	return nil
}

// done says that p was on a page before: a walk visits names in order within each folder.
func (w *walk) done(p string) bool {
	return w.in.After != "" && slices.Compare(strings.Split(p, "/"), strings.Split(w.in.After, "/")) <= 0
}

func (w *walk) matches(p string) bool {
	if w.in.Pattern == "" {
		return true
	}
	name := path.Base(p)
	if strings.Contains(w.in.Pattern, "/") {
		name = p
	}
	ok, _ := path.Match(w.in.Pattern, name) // the pattern was checked
	return ok
}

func (w *walk) add(p string, entry fs.DirEntry) {
	info, err := entry.Info()
	if err != nil {
		return // it was removed meanwhile
	}
	item := listed{Path: p, Kind: kindOf(info.Mode()), Modified: info.ModTime().UTC()}
	if info.Mode().IsRegular() {
		item.Bytes = info.Size()
	}
	w.page.Items = append(w.page.Items, item)
}
