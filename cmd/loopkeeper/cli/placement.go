package cli

import (
	"time"

	"github.com/loopkeeper/loopkeeper/configs"
	"github.com/loopkeeper/loopkeeper/coordinator"
	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// place puts the settings about models, nodes and resources into the options of a coordinator.
func place(c configs.Config, o *coordinator.Options) error {
	o.Contexts, o.Pulls = c.Models.Contexts, coordinator.PullPolicy(c.Models.Pull)
	o.Limits = scheduler.Limits{DefaultContext: c.Models.DefaultContext, Pins: c.Models.Pins, IdleUnload: c.Models.IdleUnload}
	if c.Models.IdleUnload == 0 {
		o.Limits.IdleUnload = -time.Second // for ever
	}
	o.Hours, o.Nodes, o.Resources = map[string]engine.Hours{}, map[string]engine.NodeLimits{}, map[string]engine.Resource{}
	for name, n := range c.Nodes {
		o.Nodes[name] = engine.NodeLimits{Reserve: uint64(n.Reserve), MaxCalls: n.MaxCalls}
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
	for name, r := range c.Resources {
		o.Resources[name] = engine.Resource(r)
	}
	return nil
}
