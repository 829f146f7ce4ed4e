package configs

import (
	"fmt"
	"slices"
	"strings"
)

// Policy is the rules about calls of tools, in order: the first that fits holds.
type Policy []PolicyRule

// PolicyRule says what is done with the calls that it fits. A field that is left out fits every call.
type PolicyRule struct {
	// Tool is a name such as file.write, or the beginning of names such as file.*.
	Tool string `yaml:"tool" json:"tool,omitempty"`
	// Authority is inform, advise or act.
	Authority string `yaml:"authority" json:"authority,omitempty"`
	// Affects is self, workspace or external.
	Affects string `yaml:"affects" json:"affects,omitempty"`
	// Reversible says whether the call can be undone.
	Reversible *bool `yaml:"reversible" json:"reversible,omitempty"`
	// Verifiable says whether code can look whether the call was done.
	Verifiable *bool `yaml:"verifiable" json:"verifiable,omitempty"`
	// Do is run, ask or refuse.
	Do string `yaml:"do" json:"do"`
}

// String is "file.*, act, external, not reversible: ask".
func (r PolicyRule) String() string {
	var said []string
	for _, s := range []string{r.Tool, r.Authority, r.Affects} {
		if s != "" {
			said = append(said, s)
		}
	}
	for _, is := range []struct {
		name string
		is   *bool
	}{{"reversible", r.Reversible}, {"verifiable", r.Verifiable}} {
		switch {
		case is.is == nil:
		case *is.is:
			said = append(said, is.name)
		default:
			said = append(said, "not "+is.name)
		}
	}
	if len(said) == 0 {
		said = []string{"everything"}
	}
	return strings.Join(said, ", ") + ": " + r.Do
}

// String joins the rules.
func (p Policy) String() string {
	var all []string
	for _, r := range p {
		all = append(all, r.String())
	}
	return strings.Join(all, "; ")
}

// validate returns the key and the fault of the first rule that makes no sense.
func (p Policy) validate() (string, error) {
	for i, r := range p {
		at := fmt.Sprintf("policy[%d]", i)
		if begins, _ := strings.CutSuffix(r.Tool, "*"); strings.Contains(begins, "*") {
			return at + ".tool", fmt.Errorf("want a name such as file.write, or the beginning of names such as file.*, got %q", r.Tool)
		}
		for _, f := range []struct {
			name, got string
			may       []string
		}{
			{"authority", r.Authority, []string{"", "inform", "advise", "act"}},
			{"affects", r.Affects, []string{"", "self", "workspace", "external"}},
			{"do", r.Do, []string{"run", "ask", "refuse"}},
		} {
			if !slices.Contains(f.may, f.got) {
				return at + "." + f.name, fmt.Errorf("want %s or %s, got %q", strings.Trim(strings.Join(f.may[:len(f.may)-1], ", "), ", "), f.may[len(f.may)-1], f.got)
			}
		}
	}
	return "", nil
}
