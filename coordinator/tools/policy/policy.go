// Package policy decides what a call of a tool may do: run at once, ask a person first, or be refused. It is pure: it looks at the nature of
// the call and at rules, and at nothing else. Authority belongs to one call of one step; a goal, a run or an earlier yes hands none on.
package policy

import "strings"

// Authority is how far a call goes.
type Authority string

// The authorities.
const (
	Inform Authority = "inform" // it looks, and changes nothing
	Advise Authority = "advise" // it proposes, and somebody else decides
	Act    Authority = "act"    // it changes something
)

// Affects is whom a call affects.
type Affects string

// Who can be affected.
const (
	Self      Affects = "self"      // the run alone
	Workspace Affects = "workspace" // files of this machine's owner
	External  Affects = "external"  // others
)

// Nature is what is known of a call before it acts.
type Nature struct {
	Authority  Authority `json:"authority"`
	Affects    Affects   `json:"affects"`
	Reversible bool      `json:"reversible"` // what is kept of it is enough to undo it
	Verifiable bool      `json:"verifiable"` // code can look whether it was done
}

// String is "an act, external, cannot be undone, can be verified".
func (n Nature) String() string {
	can := func(yes bool, done string) string {
		if yes {
			return "can be " + done
		}
		return "cannot be " + done
	}
	said := []string{map[Authority]string{Inform: "a look", Advise: "an advice", Act: "an act"}[n.Authority], string(n.Affects)}
	if n.Authority == Act {
		said = append(said, can(n.Reversible, "undone"), can(n.Verifiable, "verified"))
	}
	return strings.Join(said, ", ")
}

// Do is what is done with a call.
type Do string

// What can be done.
const (
	Run    Do = "run"
	Ask    Do = "ask"    // a person, first
	Refuse Do = "refuse" // never
)

// Rule is one line of a policy. A field that is empty or nil fits every call.
type Rule struct {
	Tool       string // a name such as file.write, or the beginning of names such as file.*
	Authority  Authority
	Affects    Affects
	Reversible *bool
	Verifiable *bool
	Do         Do
	Line       string // where it stands, for people
}

// Decision is what a policy says of a call, and by which line.
type Decision struct {
	Do   Do
	Line string
}

// Default is what holds where no rule fits: an act that affects others and cannot be undone asks, everything else runs.
func Default() []Rule {
	no := false
	return []Rule{
		{Authority: Act, Affects: External, Reversible: &no, Do: Ask, Line: "the default: an act that is external and cannot be undone asks"},
		{Do: Run, Line: "the default: everything else runs"},
	}
}

// Decide returns what the first rule that fits says, or else what Default says.
func Decide(rules []Rule, tool string, n Nature) Decision {
	for _, list := range [][]Rule{rules, Default()} {
		for _, r := range list {
			if r.fits(tool, n) {
				return Decision{r.Do, r.Line}
			}
		}
	}
	return Decision{Refuse, "no line fits"} // Default fits every call
}

func (r Rule) fits(tool string, n Nature) bool {
	begins, isPrefix := strings.CutSuffix(r.Tool, "*")
	switch {
	case r.Tool != "" && isPrefix && !strings.HasPrefix(tool, begins), r.Tool != "" && !isPrefix && r.Tool != tool:
		return false
	case r.Authority != "" && r.Authority != n.Authority, r.Affects != "" && r.Affects != n.Affects:
		return false
	default:
		return (r.Reversible == nil || *r.Reversible == n.Reversible) && (r.Verifiable == nil || *r.Verifiable == n.Verifiable)
	}
}
