package coordinator

import (
	"fmt"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/tools"
	"github.com/loopkeeper/loopkeeper/coordinator/tools/policy"
)

// ruler says by the policy of this machine what a call of a tool may do.
type ruler struct {
	tools *tools.Registry
	rules []policy.Rule
}

// rules are the policy's, and then that what only a test sees runs: it affects nobody.
func (o Options) rules() []policy.Rule {
	rules := o.Policy
	if o.EffectLog != nil {
		rules = append(rules[:len(rules):len(rules)], policy.Rule{Tool: o.EffectLog.Describe().Name, Do: policy.Run, Line: "simulated effects run"})
	}
	return rules
}

func (r ruler) rule(c engine.ToolCall) engine.Ruling {
	n, known := r.tools.Nature(tools.Call(c))
	if !known {
		return engine.Ruling{} // it fails as what it is
	}
	switch d := policy.Decide(r.rules, c.Tool, n); d.Do {
	case policy.Run:
		return engine.Ruling{}
	case policy.Ask:
		return engine.Ruling{Ask: &run.Question{
			Title: fmt.Sprintf("may this step call %s?", c.Tool),
			Text:  fmt.Sprintf("%s is %s.\nIt is asked for by %s.", c.Tool, n, d.Line),
			Will:  fmt.Sprintf("%s is called with the input shown, for this step alone", c.Tool),
			Show:  c.Input,
		}}
	default:
		return engine.Ruling{Refuse: &engine.Failure{Kind: run.KindRefused, Advice: run.Never,
			Message: fmt.Sprintf("%s: %s refuses it; it is %s", c.Tool, d.Line, n),
			Next:    []string{"leave the step out, or change `policy` in the settings of the coordinator and start it again"}}}
	}
}
