package run

import (
	"encoding/json"
	"fmt"
)

// claims are what the script said about acceptance. Whether it holds is computed in the end.
type claims struct {
	expected  []string
	covers    []cover
	waived    []waive
	fallbacks []fallback
	untils    []until
	refused   []string
}

type cover struct {
	Keys []string `json:"keys"`
	Step *int     `json:"step"`
	Item *int     `json:"item"`
}

type waive struct {
	Step   *int   `json:"step"`
	Item   *int   `json:"item"`
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

type fallback struct {
	Step *int `json:"step"`
	Item *int `json:"item"`
	By   *int `json:"by"`
}

type until struct {
	Label   string `json:"label"`
	Round   int    `json:"round"`
	Reached bool   `json:"reached"`
}

// take reads a note. One that makes no sense counts for nothing, and is said in the end: a note has no answer to fail.
func (c *claims) take(n *Noted) error {
	problem := n.Refused
	if problem == "" {
		problem = c.read(n)
	}
	if problem != "" {
		c.refused = append(c.refused, fmt.Sprintf("the note at position %d was not understood: %s", n.Pos, problem))
	}
	return nil
}

func (c *claims) read(n *Noted) (problem string) {
	var err error
	switch n.Op {
	case KindExpect:
		var e struct{ Keys []string }
		err = json.Unmarshal(n.Body, &e)
		c.expected = append(c.expected, e.Keys...)
	case KindCover:
		var v cover
		err = json.Unmarshal(n.Body, &v)
		c.covers = append(c.covers, v)
	case KindWaive:
		var w waive
		if err = json.Unmarshal(n.Body, &w); err == nil && (w.Reason == "" || w.Step == nil && w.Key == "") {
			return "waive needs a reason, and a step or a key"
		}
		c.waived = append(c.waived, w)
	case KindFallback:
		var f fallback
		if err = json.Unmarshal(n.Body, &f); err == nil && (f.Step == nil || f.By == nil) {
			return "fallback needs the step that failed and the one that made it good"
		}
		c.fallbacks = append(c.fallbacks, f)
	case KindUntil:
		var u until
		err = json.Unmarshal(n.Body, &u)
		c.loop(u)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// loop keeps the newest note of a label.
func (c *claims) loop(u until) {
	for i := range c.untils {
		if c.untils[i].Label == u.Label {
			c.untils[i] = u
			return
		}
	}
	c.untils = append(c.untils, u)
}
