package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Condition compares a measure with a value. A measure that is unknown makes no condition hold.
type Condition struct {
	Measure string  `json:"measure"`
	Is      string  `json:"is"` // < <= = != >= >
	Value   float64 `json:"value"`
}

// measures are what conditions can be about; true: only a watched folder has it.
var measures = map[string]bool{
	"files":         true,  // that are new or changed and quiet
	"bytes":         true,  // of those files
	"firings":       false, // so far
	"last_age":      false, // seconds since the last run of the schedule ended
	"last_ok":       false, // 1 when it completed, else 0
	"last_coverage": false, // of it, 0 to 1
	"last_failures": false, // of it
}

var comparisons = map[string]func(a, b float64) bool{
	"<":  func(a, b float64) bool { return a < b },
	"<=": func(a, b float64) bool { return a <= b },
	"=":  func(a, b float64) bool { return a == b },
	"!=": func(a, b float64) bool { return a != b },
	">=": func(a, b float64) bool { return a >= b },
	">":  func(a, b float64) bool { return a > b },
}

// String is the condition as people read it.
func (c Condition) String() string { return fmt.Sprintf("%s %s %g", c.Measure, c.Is, c.Value) }

func (c Condition) check(watch bool) error {
	ofFolder, known := measures[c.Measure]
	switch {
	case !known:
		return refuse("--rule, --gap", "%q is not measured", c.Measure).WithNext("use one of " + strings.Join(slices.Sorted(maps.Keys(measures)), ", "))
	case ofFolder && !watch:
		return refuse("--rule, --gap", "%s is measured only where a folder is watched", c.Measure)
	case comparisons[c.Is] == nil:
		return refuse("--rule, --gap", "%q is no comparison", c.Is).WithNext("use one of <, <=, =, !=, >=, >")
	}
	return nil
}

// conditions are those of the rule and of the goal's gap: all must hold for a firing.
func (s Spec) conditions() []Condition {
	all := slices.Clone(s.Rule)
	if s.Goal != nil {
		all = append(all, s.Goal.Gap...)
	}
	return all
}

// unmet says why a firing is left out, "" when every condition holds. What depends on the last run is not asked of the first firing, else
// there would never be one.
func (d *deciding) unmet(files int, bytes int64) string {
	known := d.measured(files, bytes)
	for _, c := range d.conditions() {
		v, ok := known[c.Measure]
		switch {
		case !ok && d.State.Fired == 0:
		case !ok:
			return fmt.Sprintf("%s is asked for, and %s is not known yet", c, c.Measure)
		case !comparisons[c.Is](v, c.Value):
			return fmt.Sprintf("%s is asked for, and it is %g", c, v)
		}
	}
	return ""
}

// measured are the measures that are known now.
func (d *deciding) measured(files int, bytes int64) map[string]float64 {
	m := map[string]float64{"files": float64(files), "bytes": float64(bytes), "firings": float64(d.State.Fired)}
	last := d.State.Last
	if last == nil {
		return m
	}
	m["last_age"] = d.wall.Sub(last.At).Seconds()
	m["last_ok"] = 0
	if last.State == "completed" {
		m["last_ok"] = 1
	}
	if last.Coverage != nil {
		m["last_coverage"] = *last.Coverage
	}
	if last.Failures != nil {
		m["last_failures"] = float64(*last.Failures)
	}
	return m
}
