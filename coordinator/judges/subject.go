package judges

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Subject is a text with a criterion of which it is known whether it is met.
type Subject struct {
	Subject   string `json:"subject"`
	Criterion string `json:"criterion"`
	Type      string `json:"type,omitempty"`   // of the criterion: what kind of thing it asks for
	Expected  string `json:"expected"`         // met or not_met
	Defect    string `json:"defect,omitempty"` // what was done to it, where it is not met
}

// What is expected of a subject.
const (
	Met    = "met"
	NotMet = "not_met"
)

// The types of criteria that subjects can be made for. A user's own set may have others.
const (
	Coverage   = "coverage"   // everything that was asked for is there
	Numbers    = "numbers"    // numbers are right
	Constraint = "constraint" // a rule of form is kept
	Substance  = "substance"  // something is said, and not only words made
)

// Types are the types that subjects can be made for, in that order.
func Types() []string { return []string{Coverage, Numbers, Constraint, Substance} }

// The defects that are put into texts (judgement §6.4). Injection and polish hide one of the others.
const (
	DroppedItem     = "dropped_item"
	WrongNumber     = "wrong_number"
	UnmetConstraint = "unmet_constraint"
	Filler          = "filler"    // plausible words in place of what was to be said
	Injection       = "injection" // a line that tells the judge what to answer
	Polish          = "polish"    // much courtesy around it
)

// Bounds of a set.
const (
	mostSubjects = 2000
	longestLine  = 1 << 20 // bytes of one line of a file
)

// ReadSet reads a set of JSON lines, one subject each. Its errors name the line.
func ReadSet(r io.Reader) ([]Subject, error) {
	var out []Subject
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		dec := json.NewDecoder(strings.NewReader(text))
		dec.DisallowUnknownFields()
		var s Subject
		err := dec.Decode(&s)
		if err == nil && dec.More() {
			err = errors.New("more than one value")
		}
		if err == nil {
			err = s.check()
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if out = append(out, s); len(out) > mostSubjects {
			return nil, fmt.Errorf("line %d: a set has at most %d subjects", n, mostSubjects)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("after line with %d subjects: %w", len(out), err)
	}
	return out, CheckSet(out)
}

func (s Subject) check() error {
	switch {
	case strings.TrimSpace(s.Subject) == "":
		return errors.New("subject is empty")
	case strings.TrimSpace(s.Criterion) == "":
		return errors.New("criterion is empty")
	case s.Expected != Met && s.Expected != NotMet:
		return fmt.Errorf("expected is %q, want met or not_met", s.Expected)
	case s.Expected == Met && s.Defect != "":
		return errors.New("a defect is named, and expected is met")
	}
	return nil
}

// CheckSet refuses a set that no rates can come from.
func CheckSet(set []Subject) error {
	good := 0
	for _, s := range set {
		if s.Expected == Met {
			good++
		}
	}
	switch {
	case len(set) == 0:
		return errors.New("the set has no subjects")
	case good == 0:
		return errors.New("no subject of the set is expected to be met, so false alarms cannot be counted")
	case good == len(set):
		return errors.New("no subject of the set is expected not to be met, so what a judge misses cannot be counted")
	}
	return nil
}
