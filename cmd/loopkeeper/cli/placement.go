package cli

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/configs"
	"github.com/loopkeeper/loopkeeper/coordinator"
	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/tools"
	"github.com/loopkeeper/loopkeeper/coordinator/tools/policy"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

func runLimits(b configs.Budget) run.Limits {
	return run.Limits{ActiveSeconds: b.ActiveSeconds, Tokens: b.Tokens, Calls: b.Calls, ArtifactBytes: b.ArtifactBytes, SpawnDepth: int(b.SpawnDepth)}
}

// place puts the settings about models, nodes, resources and budgets into the options of a coordinator.
func place(c configs.Config, from configs.Origins, o *coordinator.Options) error {
	o.Contexts, o.Pulls = c.Models.Contexts, coordinator.PullPolicy(c.Models.Pull)
	o.Limits = scheduler.Limits{DefaultContext: c.Models.DefaultContext, Pins: c.Models.Pins, IdleUnload: c.Models.IdleUnload}
	if c.Models.IdleUnload == 0 {
		o.Limits.IdleUnload = -time.Second // for ever
	}
	o.Hours, o.Nodes, o.Resources = map[string]engine.Hours{}, map[string]engine.NodeLimits{}, map[string]engine.Resource{}
	for name, n := range c.Nodes {
		o.Nodes[name] = engine.NodeLimits{Reserve: uint64(n.Reserve), MaxCalls: n.MaxCalls, KVType: n.KVType, GPUOverhead: uint64(n.GPUOverhead)}
		windows, err := n.Windows()
		if err != nil {
			return err
		}
		zone, err := n.Location()
		if err != nil {
			return err
		}
		for _, w := range windows {
			o.Hours[name] = append(o.Hours[name], engine.Span{Zone: zone, Days: w.Days, From: w.From, To: w.To})
		}
	}
	l := c.Limits
	o.Default, o.Budgets = runLimits(l.Budget), map[string]run.Limits{}
	o.Default.Scale = run.Scale{CallSeconds: l.CallSeconds, Width: l.Width, Least: l.LeastSeconds, Most: l.MostSeconds}
	for name, b := range l.Workflows {
		o.Budgets[name] = runLimits(b)
	}
	o.Roles = map[string][]run.RoleModel{}
	for name, models := range c.Roles {
		for _, m := range models {
			o.Roles[name] = append(o.Roles[name], run.RoleModel(m))
		}
	}
	for name, r := range c.Resources {
		o.Resources[name] = engine.Resource(r)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Workspaces)) {
		w := c.Workspaces[name]
		o.Spaces = append(o.Spaces, tools.Workspace{Name: name, Dir: w.Dir, Write: w.Write, MaxBytes: int64(w.MaxBytes)})
	}
	o.Web = map[string]tools.WebHost{}
	for name, h := range c.HTTP {
		o.Web[name] = tools.WebHost(h)
	}
	for i, r := range c.Policy {
		at := fmt.Sprintf("policy[%d]", i)
		o.Policy = append(o.Policy, policy.Rule{Tool: r.Tool, Authority: policy.Authority(r.Authority), Affects: policy.Affects(r.Affects),
			Reversible: r.Reversible, Verifiable: r.Verifiable, Do: policy.Do(r.Do), Line: fmt.Sprintf("%s (%s)", at, from.Of(at))})
	}
	return nil
}
