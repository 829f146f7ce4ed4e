package run

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/loopkeeper/loopkeeper/coordinator/run/panel"
)

// models is the model field of a request: names in order of preference, each of a model or of a role. One alone may be a plain text.
type models []string

// mostModels bounds such a list, and which of them made a result fits into little memory.
const mostModels = 16

// UnmarshalJSON reads a text or a list of texts.
func (m *models) UnmarshalJSON(raw []byte) error {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '[' {
		return json.Unmarshal(raw, (*[]string)(m))
	}
	var one string
	if err := json.Unmarshal(raw, &one); err != nil || one == "" {
		return err
	}
	*m = models{one}
	return nil
}

// oneOrMore is a text, or a list of a few.
func oneOrMore(name string, v any) error {
	several, ok := v.([]any)
	switch {
	case !ok:
		return text(name, v)
	case len(several) == 0 || len(several) > mostModels:
		return fmt.Errorf("%s must name 1 to %d models, and has %d", name, mostModels, len(several))
	default:
		return list(text)(name, v)
	}
}

// candidates are the models that are asked for, in order, with roles as they were when the run began. What is no role is a model.
func (s *State) candidates(asked models) []string {
	var out []string
	add := func(model string) {
		if !slices.Contains(out, model) {
			out = append(out, model)
		}
	}
	for _, name := range asked {
		if len(s.Pinned.Roles[name]) == 0 {
			add(name)
		}
		for _, m := range s.Pinned.Roles[name] {
			add(m.Model)
		}
	}
	return out
}

// family is that of the model which is used where one is asked for: as the roles say it, else as its name tells.
func (s *State) family(asked string) string {
	used := s.uses(asked)
	for _, role := range slices.Sorted(maps.Keys(s.Pinned.Roles)) {
		for _, m := range s.Pinned.Roles[role] {
			if m.Model == used && m.Family != "" {
				return m.Family
			}
		}
	}
	return panel.Family(used)
}

// uses is the model that the run uses in place of one that is asked for.
func (s *State) uses(asked string) string { return cmp.Or(s.Pinned.Models[asked], asked) }

// Asked is the model that an item's next attempt asks for, and while one is under way the model of that.
func (st *Step) Asked(i int) string {
	t := st.Items[i].tries
	switch {
	case len(st.Models) == 0:
		return ""
	case st.judges(st.Items[i].phase()):
		return st.judgesOf()[st.seat(i)]
	case t == nil:
		return st.Models[0]
	default:
		return st.Models[t.model]
	}
}

// MadeBy is the model that was asked for an item's result.
func (st *Step) MadeBy(i int) string {
	if at := int(st.Items[i].Report.Candidate); at < len(st.Models) {
		return st.Models[at]
	}
	return st.Model
}

// Used is the model that a step has its result from or is asking now; of a batch the one that it asks first.
func (st *Step) Used() string {
	if len(st.Items) == 1 && !st.Items[0].Result.Empty() {
		return st.MadeBy(0)
	}
	return st.First()
}

// First is the model that most of what waits of a step asks for: of a single item its own, of many the first.
func (st *Step) First() string {
	if len(st.Items) == 1 && st.spec != nil {
		return st.Asked(0)
	}
	return st.Model
}
