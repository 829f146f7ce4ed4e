package answers

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// How says how it is known that a request rests on something.
type How string

// The ways, from the surest on.
const (
	ByHash  How = "named"  // the request names the body by its hash
	ByValue How = "same"   // it holds the very value
	ByText  How = "quoted" // its text holds a text of the value
	ByOrder How = "after"  // nothing in it tells: the script asked right after it was given this
)

// Link is one thing that a request rests on.
type Link struct {
	To   Place // Step -1: handed in
	How  How
	Name string // of a body that was handed in
	Ref  string // its hash, "" for a value
}

// least is how long a value has to be for its like to mean anything, bytes.
const least = 16

// lookBack is how many steps before a request are searched for a text that it quotes.
const lookBack = 64

// links finds what requests rest on.
type links struct {
	*Record
	values map[[32]byte]Place  // by the digest of a result's canonical value
	inputs map[string]string   // by hash: bodies of the input, with their names
	given  map[[32]byte]string // by the digest of a value of the input: where it stands in it
	texts  []givenText         // of the input, the first of them
}

// givenText is a text of the input, and where it stands in it.
type givenText struct{ path, text string }

// mostTexts bounds how many texts of an input are looked for in later requests.
const mostTexts = 256

func (r *Record) links() *links {
	l := &links{Record: r, values: map[[32]byte]Place{}, inputs: map[string]string{}, given: map[[32]byte]string{}}
	for _, st := range r.State.Requests {
		if st.Note {
			continue
		}
		l.learn(whole(st.Pos), st.Result.Value)
		for i := range st.Items {
			l.learn(Place{st.Pos, i}, st.Items[i].Result.Value)
		}
	}
	each(decode(r.State.Pinned.Input), "", func(path string, v any) bool {
		if sha, name := refOf(v); sha != "" {
			l.inputs[sha] = name
			return false
		}
		if d, ok := digestOf(v); ok {
			l.given[d] = path
		}
		if s, ok := v.(string); ok && len(s) >= least && len(l.texts) < mostTexts {
			l.texts = append(l.texts, givenText{path, s})
		}
		return true
	})
	for _, s := range r.State.Pinned.Submitted {
		if s.Ref != "" {
			l.inputs[s.Ref] = s.Key
		}
	}
	return l
}

func (l *links) learn(at Place, value json.RawMessage) {
	if len(value) < least {
		return
	}
	if d, ok := digestOf(decode(value)); ok {
		if _, known := l.values[d]; !known {
			l.values[d] = at
		}
	}
}

// of finds what a place's request rests on: of a batch's item, its own body and what all items share.
func (l *links) of(at Place) []Link {
	st := l.State.Step(at.Step)
	if st == nil {
		return nil
	}
	var out []Link
	seen := map[Link]bool{}
	add := func(k Link) {
		if k.To != at && k.To != whole(at.Step) && !seen[k] && !(k.To.Step >= at.Step) {
			seen[k] = true
			out = append(out, k)
		}
	}
	var texts []string
	each(l.part(st, at.Item), "", func(_ string, v any) bool {
		if sha, name := refOf(v); sha != "" {
			if k, ok := l.body(sha, name); ok {
				add(k)
			}
			return false
		}
		if d, ok := digestOf(v); ok {
			if made, found := l.values[d]; found && made.Step < at.Step {
				add(Link{To: made, How: ByValue})
				return false
			}
			if path, found := l.given[d]; found {
				add(Link{To: Place{-1, -1}, How: ByValue, Name: path})
				return false
			}
		}
		if s, ok := v.(string); ok && len(s) >= least {
			texts = append(texts, s)
		}
		return true
	})
	for _, k := range l.quoted(at.Step, texts) {
		add(k)
	}
	if after := l.asked[at.Step].after; len(out) == 0 && after >= 0 {
		add(Link{To: whole(after), How: ByOrder})
	}
	return out
}

// body is where a body that a request names comes from.
func (l *links) body(sha, name string) (Link, bool) {
	if made, ok := l.made[sha]; ok {
		return Link{To: made, How: ByHash}, true
	}
	if known, ok := l.inputs[sha]; ok {
		if known != "" {
			name = known
		}
		return Link{To: Place{-1, -1}, How: ByHash, Name: name, Ref: sha}, true
	}
	return Link{}, false
}

// part is what of a request is about an item: all but the other items. A step as a whole is all of it.
func (l *links) part(st *run.Step, item int) any {
	v := decode(st.Body)
	fields, ok := v.(map[string]any)
	if !ok {
		return v
	}
	delete(fields, "keys")
	delete(fields, "label")
	delete(fields, "model")
	delete(fields, "workflow")
	if list, ok := fields["items"].([]any); ok && item >= 0 && item < len(list) && st.Kind == run.KindBatch {
		fields["items"] = list[item]
	}
	return v
}

// quoted finds what was handed in, and earlier small results, of which a text occurs in the request's own texts.
func (l *links) quoted(pos int, texts []string) []Link {
	var out []Link
	for _, g := range l.texts {
		if slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, g.text) }) {
			out = append(out, Link{To: Place{-1, -1}, How: ByText, Name: g.path})
		}
	}
	for before := pos - 1; before >= 0 && before >= pos-lookBack && len(texts) > 0; before-- {
		st := l.State.Requests[before]
		if st.Note || len(st.Items) > 1 {
			continue
		}
		value := st.Result.Value
		if len(st.Items) == 1 {
			value = st.Items[0].Result.Value
		}
		if quotes(texts, value) {
			out = append(out, Link{To: whole(before), How: ByText})
		}
	}
	return out
}

// quotes says whether a text of value occurs in one of texts.
func quotes(texts []string, value json.RawMessage) bool {
	found := false
	if len(value) < least {
		return false
	}
	each(decode(value), "", func(_ string, v any) bool {
		if s, ok := v.(string); ok && len(s) >= least {
			for _, t := range texts {
				found = found || strings.Contains(t, s)
			}
		}
		return !found
	})
	return found
}

// each visits v and what it holds, a container before its parts; yes goes into the parts.
func each(v any, path string, visit func(path string, v any) (yes bool)) {
	if !visit(path, v) {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			each(v[name], join(path, name), visit)
		}
	case []any:
		for i, x := range v {
			each(x, join(path, fmt.Sprint(i)), visit)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func decode(raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// refOf is the hash and the name of a reference, "" for what is none.
func refOf(v any) (sha, name string) {
	fields, ok := v.(map[string]any)
	if !ok {
		return "", ""
	}
	if sha, _ = fields["ref"].(string); len(sha) != 64 {
		return "", ""
	}
	name, _ = fields["name"].(string)
	return sha, name
}

// digestOf tells values apart that are long enough to mean something.
func digestOf(v any) (d [32]byte, ok bool) {
	switch v := v.(type) {
	case string:
		ok = len(v) >= least
	case map[string]any, []any:
		ok = true
	}
	if !ok {
		return d, false
	}
	text, err := json.Marshal(v) // sorts keys
	if err != nil || len(text) < least {
		return d, false
	}
	return sha256.Sum256(text), true
}
