package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// paramSchema is the part of a parameter's JSON Schema that decides how its text is read.
type paramSchema struct {
	Type        any                    `json:"type"`
	Format      string                 `json:"format"`
	Description string                 `json:"description"`
	Properties  map[string]paramSchema `json:"properties"`
	Items       *paramSchema           `json:"items"`
	Required    []string               `json:"required"`
	Enum        []any                  `json:"enum"`
	Default     any                    `json:"default"`
}

func (s paramSchema) is(kind string) bool { return s.Type == kind }

func (s paramSchema) file() bool { return s.Format == "file" }

func (s paramSchema) files() bool { return s.is("array") && s.Items != nil && s.Items.file() }

// paramReader makes a run's input of a JSON file and of --set arguments, and uploads the files that they name.
type paramReader struct {
	a      *app
	c      *client
	schema paramSchema
}

// read reads the input file, if there is one, and puts the sets over it.
func (p *paramReader) read(ctx context.Context, file string, sets []string) (map[string]any, error) {
	in := map[string]any{}
	if file != "" {
		raw, err := readJSON(file)
		if err != nil {
			return nil, err
		}
		if err := decode(raw, &in); err != nil {
			return nil, apierr.New(apierr.InvalidArgument, "%s: want a JSON object with the workflow's parameters", file)
		}
		for name, v := range in {
			if in[name], err = p.resolve(ctx, v, p.schema.Properties[name], filepath.Dir(file)); err != nil {
				return nil, fmt.Errorf("%s: /%s: %w", file, name, err)
			}
		}
	}
	given := map[string]bool{}
	for _, set := range sets {
		name, text, ok := strings.Cut(set, "=")
		switch {
		case !ok || name == "":
			return nil, usagef("--set %q: want NAME=VALUE", set)
		case given[name]:
			return nil, usagef("--set %s is given twice: which one is meant?", name)
		}
		given[name] = true
		v, err := p.set(ctx, text, p.schema.Properties[name])
		if err != nil {
			return nil, fmt.Errorf("--set %s: %w", name, err)
		}
		in[name] = v
	}
	return in, nil
}

// decode reads JSON without losing digits.
func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// set reads the text of one --set: @path is a file, JSON is JSON, anything else a text.
func (p *paramReader) set(ctx context.Context, text string, s paramSchema) (any, error) {
	if path, ok := strings.CutPrefix(text, "@"); ok {
		return p.fromFile(ctx, path, s)
	}
	var v any
	if s.is("string") || decode([]byte(text), &v) != nil || !json.Valid([]byte(text)) {
		return text, nil
	}
	return p.resolve(ctx, v, s, ".")
}

// fromFile gives a parameter what a file holds: a reference where the schema wants files or says nothing, else the text or
// the JSON in it.
func (p *paramReader) fromFile(ctx context.Context, path string, s paramSchema) (any, error) {
	switch {
	case s.Format == "lines":
		return p.lines(ctx, path)
	case s.is("string"):
		return readText(path)
	case s.Type != nil && !s.file() && !s.files():
		return readJSON(path)
	}
	found, _, err := inputs(ctx, []string{path}, "")
	if err != nil {
		return nil, err
	}
	refs, err := p.a.bodies(ctx, p.c, found)
	switch {
	case err != nil:
		return nil, err
	case s.files():
		return refs, nil
	case len(refs) > 1 && s.file():
		return nil, apierr.New(apierr.InvalidArgument, "%s names %d files, the parameter takes one", path, len(refs))
	case len(refs) > 1:
		return refs, nil
	default:
		return refs[0], nil
	}
}

// resolve replaces "@path" by a reference wherever the schema wants a file. Paths are relative to dir.
func (p *paramReader) resolve(ctx context.Context, v any, s paramSchema, dir string) (any, error) {
	switch v := v.(type) {
	case string:
		path, ok := strings.CutPrefix(v, "@")
		if !ok || !s.file() && !s.files() && s.Format != "lines" {
			return v, nil
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return p.fromFile(ctx, path, s)
	case []any:
		if s.Items == nil {
			return v, nil
		}
		return p.resolveList(ctx, v, *s.Items, dir)
	case map[string]any:
		for name, x := range v {
			resolved, err := p.resolve(ctx, x, s.Properties[name], dir)
			if err != nil {
				return nil, err
			}
			v[name] = resolved
		}
	}
	return v, nil
}

// resolveList resolves the elements of a list; an element that is a glob becomes the files that it names.
func (p *paramReader) resolveList(ctx context.Context, list []any, element paramSchema, dir string) (any, error) {
	var out []any
	for _, x := range list {
		s := element
		if text, ok := x.(string); ok && element.file() && strings.ContainsAny(text, "*?[") {
			s = paramSchema{Type: "array", Items: &element}
		}
		resolved, err := p.resolve(ctx, x, s, dir)
		if err != nil {
			return nil, err
		}
		if many, ok := resolved.([]any); ok && s.files() {
			out = append(out, many...)
		} else {
			out = append(out, resolved)
		}
	}
	return out, nil
}

// readJSON reads a JSON file; its faults name line and column.
func readJSON(path string) (json.RawMessage, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return parseJSON(path, data)
}

func parseJSON(path string, data []byte) (json.RawMessage, error) {
	var v json.RawMessage
	err := json.Unmarshal(data, &v)
	if err == nil {
		return v, nil
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := data[:min(int(syntax.Offset), len(data))]
		line := 1 + bytes.Count(before, []byte("\n"))
		column := len(before) - bytes.LastIndexByte(before, '\n') - 1
		return nil, apierr.New(apierr.InvalidArgument, "%s:%d:%d: not JSON: %v", path, line, max(column, 1), err).WithNext("repair the file")
	}
	return nil, apierr.New(apierr.InvalidArgument, "%s: not JSON: %v", path, err)
}
