package configs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Budget holds what a run may use; the names are those that requests and messages have. 0 is none; in a Workflows table what is not
// given is the default's, and -1 is none.
type Budget struct {
	// ActiveSeconds is a fixed budget of active time; time that a run waits for people, timers and children does not count. Default 0:
	// it follows from the work, see Limits.
	ActiveSeconds int64 `yaml:"active_seconds" json:"active_seconds"`
	// Tokens of prompts and answers together. Default 0.
	Tokens int64 `yaml:"tokens" json:"tokens"`
	// Calls of models and tools, repeated ones too. Default 0.
	Calls int64 `yaml:"calls" json:"calls"`
	// ArtifactBytes is the largest that one result may be. Default 64 MiB.
	ArtifactBytes int64 `yaml:"artifact_bytes" json:"artifact_bytes"`
	// SpawnDepth is how deep runs may start runs. Default 8.
	SpawnDepth int64 `yaml:"spawn_depth" json:"spawn_depth"`
}

// Limits are the budgets of runs: what a run is given itself goes before its workflow's, that before these.
type Limits struct {
	Budget `yaml:",inline"`
	// CallSeconds is the active time that a run gets for each wave of calls, where ActiveSeconds is 0. Default 1800; 0: it is not limited.
	CallSeconds int64 `yaml:"call_seconds"`
	// Width is how many calls count as one wave. Default 1.
	Width int `yaml:"width"`
	// LeastSeconds is what a run gets in any case. Default 86400, a day.
	LeastSeconds int64 `yaml:"least_seconds"`
	// MostSeconds bounds it, 0: nothing does. Default 2592000, thirty days.
	MostSeconds int64 `yaml:"most_seconds"`
	// Workflows has the budgets of single workflows, by name.
	Workflows Budgets `yaml:"workflows"`
}

// Budgets is a table of Budget by workflow.
type Budgets map[string]Budget

// fields are the numbers of a budget by name, in the order of messages.
func (b Budget) fields() []field {
	return []field{{"active_seconds", b.ActiveSeconds}, {"tokens", b.Tokens}, {"calls", b.Calls}, {"artifact_bytes", b.ArtifactBytes}, {"spawn_depth", b.SpawnDepth}}
}

type field struct {
	name  string
	value int64
}

// String is the table as it is shown: what is set of each.
func (b Budgets) String() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(b)) {
		for _, f := range b[name].fields() {
			if f.value != 0 {
				out = append(out, fmt.Sprintf("%s.%s: %d", name, f.name, f.value))
			}
		}
	}
	return strings.Join(out, ", ")
}

// century is more seconds than anyone means.
const century = 100 * 365 * 24 * 3600

func (l Limits) validate() (key string, err error) {
	for _, f := range append(l.fields(), field{"call_seconds", l.CallSeconds}, field{"width", int64(l.Width)},
		field{"least_seconds", l.LeastSeconds}, field{"most_seconds", l.MostSeconds}) {
		if f.value < 0 || strings.HasSuffix(f.name, "_seconds") && f.value > century {
			return "limits." + f.name, fmt.Errorf("want 0 for none, or a number that makes sense, got %d", f.value)
		}
	}
	if l.MostSeconds > 0 && l.MostSeconds < l.LeastSeconds {
		return "limits.most_seconds", fmt.Errorf("is %d, less than least_seconds, %d", l.MostSeconds, l.LeastSeconds)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Workflows)) {
		for _, f := range l.Workflows[name].fields() {
			if f.value < -1 || strings.HasSuffix(f.name, "_seconds") && f.value > century {
				return "limits.workflows." + name + "." + f.name, fmt.Errorf("want -1 for none, or a number that makes sense, got %d", f.value)
			}
		}
	}
	return "", nil
}
