package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newDrain(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "drain NODE", Short: "Let a machine finish what it runs and give it nothing new", Args: cobra.ExactArgs(1),
		Long: "Let a machine finish what it runs and give it nothing new, such as before it is switched off. What waits goes to other\n" +
			"machines. It holds until `loopkeeper nodes resume NODE`, also over restarts of the coordinator.",
		Example: "  loopkeeper nodes drain den\n  loopkeeper nodes resume den",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.useNode(cmd.Context(), &coordinatorv1.UseNodeRequest{Node: args[0], Use: "drain"})
		},
	}
}

func newResume(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "resume NODE", Short: "Use a machine again that was drained or paused", Args: cobra.ExactArgs(1),
		Example: "  loopkeeper nodes resume den",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.useNode(cmd.Context(), &coordinatorv1.UseNodeRequest{Node: args[0], Use: "resume"})
		},
	}
}

func newPause(a *app) *cobra.Command {
	var d time.Duration
	c := &cobra.Command{
		Use: "pause NODE", Short: "Free a machine's card now, for a while", Args: cobra.ExactArgs(1),
		Long: "Free a machine's card now. Calls that run there are cancelled and begun again on other machines, which costs them none of\n" +
			"their tries; the models that loopkeeper loaded there are unloaded, others stay. With --for it ends by itself, else with\n" +
			"`loopkeeper nodes resume NODE`. It holds over restarts of the coordinator. To let calls end first: `loopkeeper nodes drain`.",
		Example: "  loopkeeper nodes pause den --for 2h\n  loopkeeper nodes pause den",
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("for") && d < time.Second {
				return usagef("--for %s: want 1s or more, such as 2h", d)
			}
			return a.useNode(cmd.Context(), &coordinatorv1.UseNodeRequest{Node: args[0], Use: "pause", Seconds: int64(d / time.Second)})
		},
	}
	c.Flags().DurationVar(&d, "for", 0, "`TIME` after which it is used again, such as 2h (default until it is resumed)")
	return c
}

// useNode changes how a machine is used and says what that means.
func (a *app) useNode(ctx context.Context, r *coordinatorv1.UseNodeRequest) error {
	return a.withClient(ctx, func(ctx context.Context, c *client) error {
		out, err := c.UseNode(ctx, r)
		if err != nil {
			return nearNodes(ctx, c, []string{r.GetNode()}, err)
		}
		if a.json() {
			return a.printJSON(ui.Plain(out))
		}
		switch r.GetUse() {
		case "drain":
			a.next("loopkeeper nodes "+r.GetNode(), "loopkeeper nodes resume "+r.GetNode())
		case "pause":
			a.next("loopkeeper nodes resume " + r.GetNode())
		}
		return a.printText(useText(out, r) + "\n")
	})
}

// useText says what became of a machine.
func useText(out *coordinatorv1.UseNodeResponse, r *coordinatorv1.UseNodeRequest) string {
	n, calls := out.GetNode(), int64(out.GetCalls())
	name := ui.Line(n.GetName())
	switch r.GetUse() {
	case "drain":
		if calls == 0 {
			return name + " takes nothing new; nothing runs there"
		}
		return fmt.Sprintf("%s takes nothing new; %s there", name, ui.Plural(calls, "call ends", "calls end"))
	case "pause":
		text := name + " is paused"
		if n.GetUntil() != nil {
			text += " until " + ui.Clock(n.GetUntil().AsTime(), time.Now())
		}
		if calls > 0 {
			text += fmt.Sprintf("; %s again", ui.Plural(calls, "call is placed", "calls are placed"))
		}
		return text
	}
	if n.GetState() != "up" {
		why := n.GetWhy()
		if why == "" {
			why = n.GetProblem()
		}
		return fmt.Sprintf("%s may be used again, but it is %s: %s", name, n.GetState(), ui.Line(why))
	}
	return name + " is used again"
}
