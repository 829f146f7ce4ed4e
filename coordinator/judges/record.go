package judges

import (
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run/panel"
)

// Record is a judge's calibration as it is kept: it holds for a model's digest, the texts that judges are given, and a type of criteria.
type Record struct {
	Measured
	Prompts string    `json:"prompts"` // version of the texts
	Servers []string  `json:"servers"` // versions of Ollama that it was measured on
	Run     string    `json:"run"`
	Time    time.Time `json:"time"`
	Pairs   []Pair    `json:"pairs,omitempty"` // of this judge and others that were asked the same
	// Simulated says that a stand-in answered.
	Simulated bool `json:"simulated,omitempty"`
}

// Key is where the ledger keeps a record, among those that begin with Prefix.
func (r Record) Key() string { return Prefix + r.Digest + "/" + r.Prompts + "/" + r.Type }

// Prefix begins the keys of all records.
const Prefix = "judge/"

// N is how many subjects of each kind it rests on, good and defect.
func (r Record) N() int { return min(r.Passed.Of, r.Found.Of) }

// Margin is how far from a rate the true one may be, with 95 % confidence.
func (r Record) Margin() float64 { return max(r.Passed.Margin(), r.Found.Margin()) }

// Calibration is what a panel makes of it.
func (r Record) Calibration() panel.Calibration {
	return panel.Calibration{N: r.N(), TPR: r.Passed.Share(), TNR: r.Found.Share()}
}

// Now is what is so now of a model that was measured.
type Now struct {
	Prompts string              // version of the texts that judges are given
	Digests []string            // of the model, on the machines that are there; empty: it is not known
	Servers map[string][]string // versions of Ollama by digest, on those machines
}

// Stale says why a record no longer holds, "" while it does. What is not known is no reason.
func (r Record) Stale(n Now) string {
	switch servers := n.Servers[r.Digest]; {
	case r.Prompts != n.Prompts:
		return "the prompts of judges have changed since"
	case len(n.Digests) > 0 && !slices.Contains(n.Digests, r.Digest):
		return "another model has this name now"
	case len(servers) > 0 && len(r.Servers) > 0 && !slices.ContainsFunc(servers, func(v string) bool { return slices.Contains(r.Servers, v) }):
		return "Ollama was " + strings.Join(r.Servers, ", ") + ", and is " + strings.Join(servers, ", ") + " now"
	}
	return ""
}
