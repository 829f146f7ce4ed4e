package run

import (
	"fmt"
	"strings"
)

// found is the best that is known of an expected key.
type found uint8

const (
	nowhere found = iota
	hasFailed
	isHandled
	byCode
	isCovered
)

// books are the expected keys: by name, and by line for artifacts of lines, so that a hundred thousand lines take no names.
type books struct {
	order []string
	named map[string]found
	lines map[string][]found // by the artifact's SHA-256
}

func (j *judgement) books() *books {
	b := &books{named: map[string]found{}, lines: map[string][]found{}}
	for _, s := range j.Pinned.Submitted {
		if s.Ref != "" && s.Lines > 0 {
			b.lines[s.Ref] = make([]found, s.Lines)
		} else {
			b.expect(s.Key)
		}
	}
	for _, key := range j.claims.expected {
		b.expect(key)
	}
	return b
}

func (b *books) expect(key string) {
	if _, known := b.named[key]; !known {
		b.named[key] = nowhere
		b.order = append(b.order, key)
	}
}

// see takes in what became of a key, where it is expected.
func (b *books) see(key string, f found) {
	if was, expected := b.named[key]; expected {
		b.named[key] = max(was, f)
	}
}

// coverage compares what was expected with what was done, and says what is missing.
func (j *judgement) coverage() []string {
	b := j.books()
	if len(b.order) == 0 && len(b.lines) == 0 {
		return nil
	}
	said := j.said(b)
	for _, st := range j.Requests {
		if len(st.Items) > 0 {
			j.seeStep(b, st)
		}
	}
	for _, key := range b.order {
		j.count(b.named[key], func() string { return key })
	}
	for _, s := range j.Pinned.Submitted {
		for i, f := range b.lines[s.Ref] {
			if f != isCovered && len(said) > 0 {
				f = max(f, said[lineKey(s.Key, i)])
			}
			j.count(f, func() string { return lineKey(s.Key, i) })
		}
	}
	var out []string
	if j.a.Uncovered > 0 {
		out = append(out, missingKeys(j.a.Uncovered, j.a.Expected, "not covered", j.a.UncoveredKeys))
	}
	if j.a.Failed > 0 {
		out = append(out, missingKeys(j.a.Failed, j.a.Expected, "failed", j.a.FailedKeys))
	}
	return out
}

func missingKeys(n, of int, what string, keys []string) string {
	text := strings.Join(keys, ", ")
	if n > len(keys) {
		text += ", …"
	}
	return fmt.Sprintf("%d of %d expected keys %s: %s", n, of, what, text)
}

// said are the keys that notes of the script are about.
func (j *judgement) said(b *books) map[string]found {
	said := map[string]found{}
	note := func(key string, f found) {
		said[key] = max(said[key], f)
		b.see(key, f)
	}
	for key := range j.keys {
		note(key, isHandled)
	}
	for _, c := range j.claims.covers {
		f := j.covered(c)
		for _, key := range c.Keys {
			note(key, f)
		}
	}
	return said
}

// covered is what a cover note is worth: as much as the step that it names.
func (j *judgement) covered(c cover) found {
	if c.Step == nil {
		return byCode
	}
	st := j.Step(*c.Step)
	switch {
	case st == nil || st.Note:
		return nowhere
	case c.Item != nil && *c.Item < len(st.Items):
		return j.item(st, *c.Item)
	case st.Status == StepSucceeded && (st.Child == nil || st.Child.Status == Completed):
		return isCovered
	case j.sound(st):
		return isHandled
	case st.Status == StepFailed || st.Child != nil:
		return hasFailed
	default:
		return nowhere
	}
}

// item is what became of an item.
func (j *judgement) item(st *Step, i int) found {
	switch {
	case st.Items[i].Status == StepSucceeded:
		return isCovered
	case st.Items[i].Status != StepFailed:
		return nowhere
	case j.handled[place{st.Pos, i}] || j.handled[place{st.Pos, -1}]:
		return isHandled
	default:
		return hasFailed
	}
}

func (j *judgement) seeStep(b *books, st *Step) {
	if st.spec != nil && st.spec.lines != nil && len(st.spec.Keys) == 0 {
		if lines := b.lines[st.spec.lines.Ref]; lines != nil {
			for i := range min(len(lines), len(st.Items)) {
				lines[i] = max(lines[i], j.item(st, i))
			}
			return
		}
	}
	if len(b.named) == 0 {
		return
	}
	for i := range st.Items {
		if key, own := st.ownKey(i); own {
			b.see(key, j.item(st, i))
		}
	}
}

// ownKey is the key of item i where it has one that means something: a name that was given, of its file or of its line.
func (st *Step) ownKey(i int) (string, bool) {
	if st.spec == nil {
		return st.single, st.named
	}
	return st.ItemKey(i), st.spec.hasKey(st.Kind, i)
}

func (s *spec) hasKey(op string, i int) bool {
	return i < len(s.Keys) || s.lines != nil || s.refName(op, i) != ""
}

func (j *judgement) count(f found, key func() string) {
	a := j.a
	a.Expected++
	switch f {
	case isCovered:
		a.Covered++
	case byCode:
		a.Covered++
		a.ByCode++
	case isHandled:
		a.Handled++
	case hasFailed:
		if a.Failed++; a.Failed <= maxListed {
			a.FailedKeys = append(a.FailedKeys, key())
		}
	default:
		if a.Uncovered++; a.Uncovered <= maxListed {
			a.UncoveredKeys = append(a.UncoveredKeys, key())
		}
	}
}
