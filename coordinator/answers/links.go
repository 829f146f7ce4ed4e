package answers

import (
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

	said map[int][]string // texts of the results of steps, once they were asked for

	decoded any // the request of the step that was looked at last
	bodyOf  int
}

// givenText is a text of the input, and where it stands in it.
type givenText struct{ path, text string }

// mostTexts bounds how many texts of an input are looked for in later requests.
const mostTexts = 256

func (r *Record) links() *links {
	l := &links{Record: r, values: map[[32]byte]Place{}, inputs: map[string]string{}, given: map[[32]byte]string{}, said: map[int][]string{}}
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
			if k, ok := l.body(at.Step, sha, name); ok {
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

// body is where a body that a request names comes from. Several steps may have written the same: then the name that it has in the
// request tells, else it is the latest of them.
func (l *links) body(before int, sha, name string) (Link, bool) {
	known, handed := l.inputs[sha]
	if handed && known == name && name != "" {
		return Link{To: Place{-1, -1}, How: ByHash, Name: name, Ref: sha}, true
	}
	var latest *Place
	for _, made := range l.made[sha] {
		if made.Step >= before {
			break
		}
		if latest = &made; name != "" && l.nameOf(made) == name {
			break
		}
	}
	switch {
	case latest != nil:
		return Link{To: *latest, How: ByHash}, true
	case handed:
		if known == "" {
			known = name
		}
		return Link{To: Place{-1, -1}, How: ByHash, Name: known, Ref: sha}, true
	}
	return Link{}, false
}

// nameOf is the name that a step's text has as a reference.
func (l *links) nameOf(at Place) string {
	st := l.State.Step(at.Step)
	if st.Label != "" {
		return st.Label
	}
	return fmt.Sprintf("step %d", at.Step)
}

// part is what of a request is about an item: all but the other items. A step as a whole is all of it.
func (l *links) part(st *run.Step, item int) any {
	if l.decoded == nil || l.bodyOf != st.Pos {
		l.decoded, l.bodyOf = decode(st.Body), st.Pos // a large batch is asked for item by item
	}
	all, ok := l.decoded.(map[string]any)
	if !ok {
		return l.decoded
	}
	fields := maps.Clone(all)
	delete(fields, "keys")
	delete(fields, "label")
	delete(fields, "model")
	delete(fields, "workflow")
	if list, ok := fields["items"].([]any); ok && item >= 0 && item < len(list) && st.Kind == run.KindBatch {
		fields["items"] = list[item]
	}
	return fields
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
		if slices.ContainsFunc(l.saidBy(st), func(said string) bool {
			return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, said) })
		}) {
			out = append(out, Link{To: whole(before), How: ByText})
		}
	}
	return out
}

// saidBy are the texts of a step's small result that are long enough to mean something.
func (l *links) saidBy(st *run.Step) []string {
	if said, known := l.said[st.Pos]; known {
		return said
	}
	value := st.Result.Value
	if len(st.Items) == 1 {
		value = st.Items[0].Result.Value
	}
	var out []string
	if len(value) >= least {
		each(decode(value), "", func(_ string, v any) bool {
			if s, ok := v.(string); ok && len(s) >= least {
				out = append(out, s)
			}
			return true
		})
	}
	l.said[st.Pos] = out
	return out
}
