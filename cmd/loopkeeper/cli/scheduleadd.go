package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/coordinator/schedule"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

type scheduleOptions struct {
	workflow, cron, zone    string
	every, settle           time.Duration
	watch, pattern          string
	recursive, existing     bool
	input                   string
	sets, rules, gaps       []string
	goal                    string
	overlap, catchUp, reach string
	limit                   int
	replace, dryRun         bool
}

func newScheduleAdd(a *app) *cobra.Command {
	var o scheduleOptions
	c := &cobra.Command{
		Use: "add NAME", Short: "Start a workflow at a time, at an interval, or for new files", Args: cobra.ExactArgs(1),
		Long: "Start a workflow at a time (--cron), at an interval (--every), or when files of a folder are new or changed (--watch). All that\n" +
			"can be known to fail fails now. The files of a folder are handed to the workflow's parameter `files`; files in --set and\n" +
			"--input are kept as they are now. See docs/schedules.md.\n\n" +
			"With --rule a time or a file counts only when the rule holds; --goal says what is to be reached, and --gap how code measures\n" +
			"what is missing. Measures: files, bytes, firings, last_age, last_ok, last_coverage, last_failures.",
		Example: "  loopkeeper schedule add nightly --workflow review --cron '30 2 * * mon-fri' --zone Europe/Berlin --set 'files=@docs/*.md'\n" +
			"  loopkeeper schedule add inbox --workflow map --watch ~/inbox --pattern '*.md' --set model=qwen3:8b --set 'prompt=Sum up: {{item}}'\n" +
			"  loopkeeper schedule add check --workflow ./check.ts --every 2h --rule 'last_failures > 0' --reach advise",
		RunE: func(cmd *cobra.Command, args []string) error { return a.addSchedule(cmd.Context(), o, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.workflow, "workflow", "", "`WORKFLOW` by its name, or a script")
	f.StringVar(&o.cron, "cron", "", "five `FIELDS`: minute hour day month weekday, or @daily and its kin")
	f.StringVar(&o.zone, "zone", "", "time `ZONE` of --cron, such as Europe/Berlin (default UTC)")
	f.DurationVar(&o.every, "every", 0, "`TIME` between two starts, such as 2h")
	f.StringVar(&o.watch, "watch", "", "`FOLDER` on the coordinator's machine")
	f.StringVar(&o.pattern, "pattern", "", "of the names of its files, such as `*.md`")
	f.BoolVar(&o.recursive, "recursive", false, "its folders count, too")
	f.BoolVar(&o.existing, "existing", false, "files that are there already count as new")
	f.DurationVar(&o.settle, "settle", 0, "`TIME` that a file must have stayed as it is (default 10s)")
	f.StringVar(&o.input, "input", "", "JSON `FILE` with the parameters")
	f.StringArrayVar(&o.sets, "set", nil, "one parameter, `NAME=VALUE`; @path is a file; may be repeated")
	f.StringArrayVar(&o.rules, "rule", nil, "`CONDITION` that must hold, such as 'files >= 3'; may be repeated")
	f.StringVar(&o.goal, "goal", "", "`TEXT`: what is to be reached; needs --gap")
	f.StringArrayVar(&o.gaps, "gap", nil, "`CONDITION` under which something is missing; may be repeated")
	f.StringVar(&o.overlap, "overlap", "", "while a run is under way: `skip`, queue, cancel or allow (default skip, with --watch queue)")
	f.StringVar(&o.catchUp, "catch-up", "", "of what was missed: none, `last`, all, or the newest N (default last, with --watch all)")
	f.IntVar(&o.limit, "limit", 0, "start at most `N` times")
	f.StringVar(&o.reach, "reach", "", "how far it may go: `inform`, advise or act (default inform)")
	f.BoolVar(&o.replace, "replace", false, "put it in the place of the schedule that has the name")
	f.BoolVar(&o.dryRun, "dry-run", false, "check everything, say when it would start, and keep nothing")
	return c
}

// spec is what the flags say.
func (o scheduleOptions) spec() (s schedule.Spec, err error) {
	if o.workflow == "" {
		return s, usageError{usagef("--workflow is missing"), []string{"loopkeeper workflows"}}
	}
	if o.every%time.Second != 0 || o.every < 0 {
		return s, usagef("--every %s: want whole seconds, such as 2h", o.every)
	}
	if err := o.when(); err != nil {
		return s, err
	}
	s = schedule.Spec{Cron: o.cron, Zone: o.zone, EverySeconds: int64(o.every / time.Second), Overlap: schedule.Overlap(o.overlap), MaxFirings: o.limit,
		Reach: schedule.Reach(o.reach)}
	if o.watch != "" {
		folder, err := filepath.Abs(o.watch)
		if err != nil {
			return s, apierr.Wrap(err, apierr.InvalidArgument, "find the folder %s", o.watch)
		}
		s.Watch = &schedule.Watch{Folder: folder, Pattern: o.pattern, Recursive: o.recursive, Existing: o.existing, SettleSeconds: int64(o.settle / time.Second)}
		if s.Watch.SettleSeconds > 0 {
			s.Watch.PollSeconds = min(s.Watch.SettleSeconds, 5)
		}
	} else if o.pattern != "" || o.recursive || o.existing || o.settle != 0 {
		return s, usagef("--pattern, --recursive, --existing and --settle are about a folder: name it with --watch")
	}
	switch n, notNumber := strconv.Atoi(o.catchUp); {
	case notNumber != nil:
		s.CatchUp.Policy = schedule.CatchUpPolicy(o.catchUp)
	case n < 1:
		return s, usagef("--catch-up %d: want none, last, all or a number from 1 on", n)
	default:
		s.CatchUp = schedule.CatchUp{Policy: schedule.All, Most: n}
	}
	if s.Rule, err = conditions("--rule", o.rules); err != nil {
		return s, err
	}
	gap, err := conditions("--gap", o.gaps)
	if o.goal != "" || len(gap) > 0 {
		s.Goal = &schedule.Goal{Text: o.goal, Gap: gap}
	}
	return s, err
}

// when refuses flags that say when it starts not at all, or in two ways.
func (o scheduleOptions) when() error {
	given := 0
	for _, is := range []bool{o.cron != "", o.every != 0, o.watch != ""} {
		if is {
			given++
		}
	}
	add := "loopkeeper schedule add NAME --workflow " + quote(o.workflow) + " "
	switch {
	case given != 1:
		return usageError{usagef("say when it starts, by one of --cron, --every and --watch"), []string{add + "--cron '30 2 * * mon-fri'", add + "--every 2h", add + "--watch FOLDER"}}
	case o.zone != "" && o.cron == "":
		return usageError{usagef("--zone is of the times of --cron, and there is none"), []string{add + "--cron '30 2 * * *' --zone " + quote(o.zone)}}
	case (o.goal != "") != (len(o.gaps) > 0):
		return usagef("--goal says what is to be reached and --gap how code measures what is missing, such as --gap 'last_failures > 0': give both")
	}
	return nil
}

var conditionForm = regexp.MustCompile(`^\s*([a-z_]+)\s*(<=|>=|!=|<|>|=)\s*(\S+)\s*$`)

// conditions reads texts such as "files >= 3".
func conditions(flag string, texts []string) (all []schedule.Condition, err error) {
	for _, text := range texts {
		m := conditionForm.FindStringSubmatch(text)
		if m == nil {
			return nil, usagef("%s %q: want a measure, a comparison and a number, such as 'files >= 3'", flag, text)
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, usagef("%s %q: %s is no number", flag, text, m[3])
		}
		all = append(all, schedule.Condition{Measure: m[1], Is: m[2], Value: v})
	}
	return all, nil
}

// addSchedule makes a schedule and says when it starts next. It asks nothing.
func (a *app) addSchedule(ctx context.Context, o scheduleOptions, name string) error {
	spec, err := o.spec()
	if err != nil {
		return err
	}
	spec.By = who()
	j, err := workflow(o.workflow)
	if err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	described, err := describe(ctx, c, j)
	if err != nil {
		return err
	}
	reader := &paramReader{a: a, c: c}
	if raw := described.GetParamsSchemaJson(); len(raw) > 0 {
		if err := json.Unmarshal(raw, &reader.schema); err != nil {
			return apierr.Wrap(err, apierr.InvalidArgument, "read the parameters that %s declares", o.workflow)
		}
	}
	r := &coordinatorv1.AddScheduleRequest{Name: name, Replace: o.replace, DryRun: o.dryRun}
	in, err := reader.read(ctx, o.input, o.sets)
	if err == nil {
		r.InputJson, err = json.Marshal(in)
	}
	if err == nil {
		r.SpecJson, err = json.Marshal(spec)
	}
	if err != nil {
		return err
	}
	if j.bundle != nil {
		r.Workflow = &coordinatorv1.AddScheduleRequest_Bundle{Bundle: j.bundle}
	} else {
		r.Workflow = &coordinatorv1.AddScheduleRequest_Named{Named: j.builtIn}
	}
	added, err := c.AddSchedule(ctx, r)
	if codeOf(err) == apierr.Conflict {
		e := apierr.As(apierr.FromStatus(err))
		e.Next = append([]string{a.commandWithout(nil, "--replace")}, e.Next...)
		return e
	}
	if err != nil {
		return err
	}
	return a.printAdded(added, o.dryRun)
}

func (a *app) printAdded(r *coordinatorv1.AddScheduleResponse, dry bool) error {
	if a.json() {
		return a.printJSON(ui.Plain(r))
	}
	for _, n := range r.GetNotes() {
		a.note("%s", ui.Line(n))
	}
	text := ui.Schedule(a.style(a.stdout), r.GetSchedule(), r.GetNext(), time.Now())
	if dry {
		return a.printText(text + "dry run: all is well, nothing was kept\n")
	}
	a.next("loopkeeper schedule show "+r.GetSchedule().GetName(), "loopkeeper schedule pause "+r.GetSchedule().GetName())
	return a.printText(text)
}
