package answers

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// Unknown says that a run has nothing of that name. Names are some that it has.
type Unknown struct {
	Run, Subject string
	Names        []string
}

func (u *Unknown) Error() string {
	return fmt.Sprintf("run %s has no output, key, file or step named %q", u.Run, u.Subject)
}

// mostSame is how many items of one key are explained, the newest first.
const mostSame = 8

// begin finds what the subject names.
func (w *why) begin(subject string) error {
	s := w.State
	if subject == "" && len(s.Outputs) > 0 {
		subject = s.Outputs[len(s.Outputs)-1].Name
		for _, o := range s.Outputs {
			if o.Name == "result" {
				subject = o.Name
			}
		}
	}
	if i := slices.IndexFunc(s.Outputs, func(o run.Output) bool { return o.Name == subject }); i >= 0 {
		w.output(s.Outputs[i])
		return nil
	}
	if at, ok := w.position(subject); ok {
		w.push(at, 0)
		return nil
	}
	found := w.keyed(subject)
	for i, at := range found {
		if i == mostSame {
			w.say("%d more steps are about %s", len(found)-i, subject)
			break
		}
		w.push(at, 0)
	}
	if len(found) > 0 || w.onlyHandedIn(subject) {
		return nil
	}
	return &Unknown{Run: s.Pinned.ID, Subject: subject, Names: w.names()}
}

// output explains an output by the steps that it rests on.
func (w *why) output(o run.Output) {
	b := Basis{Subject: o.Name, Step: -1, Item: -1, Kind: "output", State: "noted", Time: w.State.Ended}
	if o.Inferred {
		b.Reasons = append(b.Reasons, "nobody could see where the value comes from: these are all steps that had succeeded by then")
	}
	for _, pos := range o.Sources {
		if st := w.State.Step(pos); st == nil || st.Note {
			w.say("output %s names step %d, which is none", o.Name, pos)
			continue
		}
		at := w.pin(pos, o.Value)
		name := w.push(at, 1)
		b.rests(name, w.lead(at)+name)
	}
	if len(o.Sources) == 0 {
		b.Reasons = append(b.Reasons, "no step stands behind it: the script made it by itself")
	}
	if sha, name := refOf(decode(o.Value)); sha != "" {
		b.Bodies = append(b.Bodies, Body{SHA256: sha, Name: "result " + name})
	}
	w.add(b)
}

// pin is the one item of a batch whose result an output is, else the whole step.
func (w *why) pin(pos int, value json.RawMessage) Place {
	v := decode(value)
	if sha, _ := refOf(v); sha != "" {
		for _, at := range w.made[sha] {
			if at.Step == pos {
				return at
			}
		}
	}
	if d, ok := digestOf(v); ok {
		if at, found := w.values[d]; found && at.Step == pos {
			return at
		}
	}
	return whole(pos)
}

// position reads "3", "step 3", "3/7" and "3/key".
func (w *why) position(subject string) (Place, bool) {
	step, item, parts := strings.Cut(strings.TrimPrefix(subject, "step "), "/")
	pos, err := strconv.Atoi(step)
	st := w.State.Step(pos)
	if err != nil || st == nil {
		return Place{}, false
	}
	if !parts {
		return whole(pos), true
	}
	if i, err := strconv.Atoi(item); err == nil && i >= 0 && i < len(st.Items) {
		return Place{pos, i}, true
	}
	for i := range st.Items {
		if st.ItemKey(i) == item {
			return Place{pos, i}, true
		}
	}
	return Place{}, false
}

// keyed are the places that are about a key, a label or a file, the newest first: what wrote the file, items of that key.
func (w *why) keyed(subject string) []Place {
	var wrote, about []Place
	for _, st := range slices.Backward(w.State.Requests) {
		switch {
		case st.Note:
		case st.Kind == run.KindTool:
			if file, ok := written(st); ok && (file == subject || path.Base(file) == subject) {
				wrote = append(wrote, whole(st.Pos))
			}
		case st.Kind == run.KindBatch:
			for i := range st.Items {
				if st.ItemKey(i) == subject {
					about = append(about, Place{st.Pos, i})
				}
			}
		case st.Label == subject, len(st.Items) == 1 && st.ItemKey(0) == subject:
			about = append(about, whole(st.Pos))
		}
	}
	return append(wrote, about...)
}

// written is the file that a tool's step writes.
func written(st *run.Step) (file string, ok bool) {
	var ask struct {
		Name  string `json:"name"`
		Input struct {
			Workspace string          `json:"workspace"`
			Path      string          `json:"path"`
			Body      json.RawMessage `json:"body"`
		} `json:"input"`
	}
	if st.Kind != run.KindTool || json.Unmarshal(st.Body, &ask) != nil || ask.Input.Path == "" || !st.External && ask.Input.Body == nil {
		return "", false
	}
	return path.Clean(ask.Input.Path), true
}

// onlyHandedIn explains a key that nothing worked on: it was handed in, or expected, and no more.
func (w *why) onlyHandedIn(subject string) bool {
	for sha, name := range w.links.inputs {
		if name == subject {
			w.handed = append(w.handed, Link{To: Place{-1, -1}, How: ByHash, Name: name, Ref: sha})
			w.say("%s was handed in, and no step is about it", subject)
			return true
		}
	}
	for _, s := range w.State.Pinned.Submitted {
		if s.Key == subject {
			w.handed = append(w.handed, Link{To: Place{-1, -1}, Name: subject})
			w.say("%s was handed in, and no step is about it", subject)
			return true
		}
	}
	return false
}

// mostNames is how many names an unknown subject is answered with.
const mostNames = 6

// names are outputs, files and keys that can be asked for.
func (w *why) names() []string {
	var out []string
	add := func(n string) {
		if len(out) < mostNames && n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	for _, o := range w.State.Outputs {
		add(o.Name)
	}
	for _, st := range w.State.Requests {
		if file, ok := written(st); ok {
			add(file)
		}
		for i := range min(len(st.Items), mostNames) {
			if st.Kind == run.KindBatch {
				add(st.ItemKey(i))
			}
		}
		if !st.Note {
			add(strconv.Itoa(st.Pos))
		}
	}
	return out
}
