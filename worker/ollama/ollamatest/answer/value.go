package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxDepth is where optional parts are left out, so that recursive schemas end.
const maxDepth = 6

// builder makes one value.
type builder struct {
	*source
	root json.RawMessage
}

// place is where in the value something stands.
type place struct {
	name  string // key, normalised
	path  string // for the choices that the seed makes
	index int    // in the nearest array
	depth int
	step  *step // set inside an item of a plan
}

func (p place) child(name string) place {
	p.name, p.path, p.depth = normalise(name), p.path+"/"+name, p.depth+1
	return p
}

func (p place) item(i int) place {
	p.index, p.path, p.depth = i, p.path+"/"+strconv.Itoa(i), p.depth+1
	return p
}

// normalise strips the prefix that keeps keys in order, as in b_outcome.
func normalise(name string) string {
	name = strings.ToLower(name)
	if len(name) > 2 && name[1] == '_' {
		name = name[2:]
	}
	return name
}

// Value returns JSON that is valid against the schema, as far as the schema uses what Ollama's grammars enforce. Keys
// come as from a grammar: required ones in the order of the schema, then the optional ones. On schemas that Ollama does
// not survive it fails with a *Refusal.
func Value(req Request, schemaText []byte) ([]byte, error) {
	if r := refused(schemaText); r != nil {
		return nil, r
	}
	b := &builder{source: read(req), root: schemaText}
	var out bytes.Buffer
	if err := b.build(&out, schemaText, place{}); err != nil {
		return nil, &Refusal{Harm: Refuses, Reason: err.Error()}
	}
	return out.Bytes(), nil
}

func (b *builder) build(out *bytes.Buffer, raw json.RawMessage, at place) error {
	if at.depth > 64 {
		return errDepth
	}
	s, err := b.parse(raw, 0)
	if err != nil {
		return err
	}
	if len(s.Const) > 0 {
		return json.Compact(out, s.Const)
	}
	if len(s.Enum) > 0 {
		return json.Compact(out, b.choose(s.Enum, at))
	}
	if branches := orSlice(s.AnyOf, s.OneOf); len(branches) > 0 && s.Properties == nil {
		return b.build(out, b.branch(branches, at), at)
	}
	switch kind := s.kind(); kind {
	case "object":
		return b.object(out, s, at)
	case "array":
		return b.array(out, s, at)
	case "integer", "number":
		out.WriteString(b.number(s, kind == "integer", at))
	case "boolean":
		fmt.Fprint(out, b.boolean(at))
	case "null":
		out.WriteString("null")
	case "string":
		return writeString(out, b.text(s, at))
	default: // anything goes; at the root Ollama makes an object of it
		if at.depth == 0 {
			out.WriteString(`{"answer":`)
			defer out.WriteByte('}')
		}
		return writeString(out, b.text(s, at))
	}
	return nil
}

// branch chooses among alternatives; deep down the first that does not go deeper.
func (b *builder) branch(branches []json.RawMessage, at place) json.RawMessage {
	if at.depth < maxDepth {
		i := int(pick(b.req.Seed, at.path) * float64(len(branches)))
		if text := string(branches[i]); !strings.Contains(text, `"null"`) {
			return branches[i]
		}
		return branches[0]
	}
	for _, raw := range branches {
		if text := string(raw); !strings.Contains(text, "$ref") && !strings.Contains(text, "object") && !strings.Contains(text, "array") {
			return raw
		}
	}
	return branches[0]
}

func (b *builder) object(out *bytes.Buffer, s *schema, at place) error {
	w := objectWriter{out: out}
	out.WriteByte('{')
	for _, required := range []bool{true, false} {
		if s.Properties == nil {
			break
		}
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			if slices.Contains(s.Required, p.Key) != required || !required && at.depth >= maxDepth {
				continue
			}
			if err := w.put(b, p.Key, p.Value, at); err != nil {
				return err
			}
		}
	}
	for _, key := range s.Required { // named, but not described
		if err := w.put(b, key, s.Additional, at); err != nil {
			return err
		}
	}
	if err := b.freeKeys(&w, s, at); err != nil {
		return err
	}
	out.WriteByte('}')
	return nil
}

// objectWriter writes each key once.
type objectWriter struct {
	out  *bytes.Buffer
	seen []string
}

func (w *objectWriter) put(b *builder, key string, raw json.RawMessage, at place) error {
	if slices.Contains(w.seen, key) {
		return nil
	}
	if len(w.seen) > 0 {
		w.out.WriteByte(',')
	}
	w.seen = append(w.seen, key)
	if err := writeString(w.out, key); err != nil {
		return err
	}
	w.out.WriteByte(':')
	return b.build(w.out, raw, at.child(key))
}

// freeKeys fills maps: as many keys as asked for, one otherwise if the map has no other keys.
func (b *builder) freeKeys(w *objectWriter, s *schema, at place) error {
	want := number(s.MinKeys, 0)
	isMap := len(s.Additional) > 0 && s.Additional[0] == '{'
	if s.Properties == nil && (isMap || s.PatternProp != nil) {
		want = max(want, 1)
	}
	for i := 0; len(w.seen) < want && i < 1000; i++ {
		key, raw := fmt.Sprintf("key%d", i+1), s.Additional
		switch {
		case s.PatternProp != nil && s.PatternProp.Len() > 0:
			p := s.PatternProp.Oldest()
			key, raw = fromPattern(p.Key, i), p.Value
		case len(s.KeyNames) > 0:
			names, err := b.parse(s.KeyNames, 0)
			if err != nil {
				return err
			}
			key = b.keyName(names, i)
		}
		if err := w.put(b, key, raw, at); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) keyName(names *schema, i int) string {
	if len(names.Enum) > 0 {
		var key string
		if json.Unmarshal(names.Enum[i%len(names.Enum)], &key) == nil {
			return key
		}
	}
	return b.text(names, place{name: "id", index: i})
}

func (b *builder) array(out *bytes.Buffer, s *schema, at place) error {
	least, most := number(s.MinItems, 0), number(s.MaxItems, 1<<20)
	if len(s.Prefix) > 0 {
		least = max(least, len(s.Prefix))
	} else if p, err := b.plan(s, at, least, most); err != nil || p != nil {
		return b.writePlan(out, s, p, at, err)
	}
	if at.step != nil && isDependency(at.name) {
		return b.dependencies(out, s, at, most)
	}
	if at.step != nil {
		if list, ok := at.step.work.list(at.name); ok {
			return writeList(out, list[:min(len(list), most)])
		}
	}
	n := b.length(s, at, least, most)
	items := uniqueItems{unique: s.Unique}
	for i := 0; items.len() < n && i < n+1000; i++ {
		raw := s.Items
		switch {
		case items.len() < len(s.Prefix):
			raw = s.Prefix[items.len()]
		case items.len() == 0 && len(s.Contains) > 0:
			raw = s.Contains
		}
		var item bytes.Buffer
		if err := b.build(&item, raw, at.item(i)); err != nil {
			return err
		}
		items.add(item.Bytes())
	}
	out.WriteByte('[')
	out.Write(bytes.Join(items.list, []byte(",")))
	out.WriteByte(']')
	return nil
}

// uniqueItems collects items, refusing repeats when they must differ.
type uniqueItems struct {
	unique bool
	list   [][]byte
}

func (u *uniqueItems) len() int { return len(u.list) }

func (u *uniqueItems) add(item []byte) {
	if u.unique && slices.ContainsFunc(u.list, func(have []byte) bool { return bytes.Equal(have, item) }) {
		return
	}
	u.list = append(u.list, item)
}

// length is how many items an array gets: few, and none where items would be bad news.
func (b *builder) length(s *schema, at place, least, most int) int {
	n := 3
	switch {
	case len(s.Prefix) > 0:
		n = len(s.Prefix)
	case len(s.Items) == 0 && s.Contains == nil, at.depth >= maxDepth, hasAny(at.name, "writes", "reads", "questions"):
		n = least
	case hasAny(at.name, "issues", "problems", "errors"):
		if n = least; b.req.Reject {
			n = 1
		}
	case hasAny(at.name, "evidence", "quotes", "quote", "done_when"):
		n = 2
	case hasAny(at.name, "parts"):
		n = most
	case len(s.Contains) > 0:
		n = 1
	}
	return max(least, min(n, most, 1000))
}

func writeList(out *bytes.Buffer, list []string) error {
	out.WriteByte('[')
	for i, s := range list {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := writeString(out, s); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	return nil
}

func writeString(out *bytes.Buffer, s string) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // Encode ends the line
	return nil
}

// hasAny says whether a normalised name is one of the words or ends in one.
func hasAny(name string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return name == w || strings.HasSuffix(name, "_"+w) })
}
