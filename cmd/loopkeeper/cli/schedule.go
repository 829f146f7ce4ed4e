package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newSchedule(a *app) *cobra.Command {
	list := func(cmd *cobra.Command, _ []string) error { return a.withClient(cmd.Context(), a.listSchedules) }
	c := &cobra.Command{
		Use: "schedule", Short: "List what starts by itself, at a time or for new files; add to it", Args: cobra.NoArgs,
		Long: "List what starts by itself: at a time, at an interval, or when files of a folder are new or changed. Each says who defined the\n" +
			"problem (L1 a time, L2 a trigger, L3 a rule, L4 a goal whose gap code measures) and how far it may go.",
		Example: "  loopkeeper schedule\n  loopkeeper schedule add nightly --workflow review --cron '30 2 * * mon-fri' --zone Europe/Berlin\n" +
			"  loopkeeper schedule add inbox --workflow map --watch ~/inbox --set model=qwen3:8b --set 'prompt=Summarise: {{item}}'",
		RunE: list,
	}
	c.AddCommand(&cobra.Command{Use: "list", Short: "List the schedules", Args: cobra.NoArgs, Example: "  loopkeeper schedule list -o json", RunE: list},
		newScheduleAdd(a), newScheduleShow(a), newSchedulePause(a), newScheduleResume(a), newScheduleRun(a), newScheduleRemove(a))
	return c
}

func (a *app) listSchedules(ctx context.Context, c *client) error {
	r, err := c.ListSchedules(ctx, &coordinatorv1.ListSchedulesRequest{})
	if err != nil {
		return err
	}
	if !a.json() {
		return a.printText(ui.Schedules(a.style(a.stdout), r.GetSchedules(), time.Now()))
	}
	list := []any{}
	for _, s := range r.GetSchedules() {
		list = append(list, ui.Plain(s))
	}
	return a.printList("schedules", list)
}

func newScheduleShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a schedule in full", Args: cobra.ExactArgs(1), Example: "  loopkeeper schedule show nightly",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				r, err := c.ListSchedules(ctx, &coordinatorv1.ListSchedulesRequest{})
				if err != nil {
					return err
				}
				i := slices.IndexFunc(r.GetSchedules(), func(s *coordinatorv1.Schedule) bool { return s.GetName() == args[0] })
				if i < 0 {
					return nearSchedules(ctx, c, args[0], apierr.New(apierr.NotFound, "there is no schedule %q", args[0]).WithNext("loopkeeper schedule list"))
				}
				s := r.GetSchedules()[i]
				if a.json() {
					return a.printJSON(ui.Plain(s))
				}
				if s.GetLastRun() != "" {
					a.next("loopkeeper show " + s.GetLastRun())
				}
				return a.printText(ui.Schedule(a.style(a.stdout), s, nil, time.Now()))
			})
		},
	}
}

func newSchedulePause(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "pause NAME", Short: "Start nothing more until it is resumed", Args: cobra.ExactArgs(1), Example: "  loopkeeper schedule pause nightly",
		Long: "Start nothing more until it is resumed. Runs under way go on. Times that pass meanwhile are not made up for; files that come\n" +
			"meanwhile are treated as after a downtime.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.useSchedule(cmd.Context(), args[0], "pause", " is paused")
		},
	}
}

func newScheduleResume(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "resume NAME", Short: "Go on with a schedule that was paused", Args: cobra.ExactArgs(1), Example: "  loopkeeper schedule resume nightly",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.useSchedule(cmd.Context(), args[0], "resume", " goes on")
		},
	}
}

// useSchedule pauses or resumes a schedule and says so.
func (a *app) useSchedule(ctx context.Context, name, use, what string) error {
	return a.withClient(ctx, func(ctx context.Context, c *client) error {
		r, err := c.UseSchedule(ctx, &coordinatorv1.UseScheduleRequest{Name: name, Use: use})
		if err != nil {
			return nearSchedules(ctx, c, name, err)
		}
		if a.json() {
			return a.printJSON(ui.Plain(r))
		}
		if use == "pause" {
			a.next("loopkeeper schedule resume " + name)
		} else if next := ui.NextFiring(r.GetSchedule(), time.Now()); next != "" {
			what += "; next " + next
		}
		return a.printText(name + what + "\n")
	})
}

func newScheduleRun(a *app) *cobra.Command {
	var detach, wait bool
	c := &cobra.Command{
		Use: "run NAME", Short: "Start what a schedule starts, now", Args: cobra.ExactArgs(1), Example: "  loopkeeper schedule run nightly",
		Long: "Start what a schedule starts, now, whatever its times and its rule say, also while it is paused. It counts as a run of the\n" +
			"schedule that is under way, not as one of its firings.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				r, err := c.UseSchedule(ctx, &coordinatorv1.UseScheduleRequest{Name: args[0], Use: "fire"})
				if err != nil {
					return nearSchedules(ctx, c, args[0], err)
				}
				if detach {
					return a.printDetached(ctx, c, &coordinatorv1.SubmitResponse{RunId: r.GetRunId()}, destination{})
				}
				a.giveUp = !wait
				run, err := a.follow(ctx, c, r.GetRunId(), nil, destination{})
				if err != nil {
					return err
				}
				return a.showOutputs(ctx, c, run, "")
			})
		},
	}
	c.Flags().BoolVar(&detach, "detach", false, "start the run and return at once")
	registerWait(c, &wait)
	return c
}

func newScheduleRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "End a schedule; runs that it started go on", Args: cobra.ExactArgs(1), Example: "  loopkeeper schedule remove nightly",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				if _, err := c.RemoveSchedule(ctx, &coordinatorv1.RemoveScheduleRequest{Name: args[0]}); err != nil {
					return nearSchedules(ctx, c, args[0], err)
				}
				if a.json() {
					return a.printJSON(map[string]any{"removed": args[0]})
				}
				return a.printText(args[0] + " starts nothing more\n")
			})
		},
	}
}

// nearSchedules adds to an error about a schedule that is not there the ones that may have been meant.
func nearSchedules(ctx context.Context, c *client, name string, err error) error {
	if codeOf(err) != apierr.NotFound {
		return err
	}
	r, failed := c.ListSchedules(ctx, &coordinatorv1.ListSchedulesRequest{})
	if failed != nil {
		return err // what went wrong first matters more
	}
	var names []string
	for _, s := range r.GetSchedules() {
		names = append(names, s.GetName())
	}
	if slices.Contains(names, name) {
		return err
	}
	return meant(err, name, names)
}
