package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/coordinator/judges"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

type calibrateOptions struct {
	run      runFlags
	judges   []string
	kind     string
	set      string
	from     []string
	n        int
	seed     uint64
	done     string // a run that has asked already
	dump     string // file for the set
	numbered bool   // --n was given
}

// judgeRole is the role whose models judge.
const judgeRole = "judge"

func newCalibrate(a *app) *cobra.Command {
	var o calibrateOptions
	c := &cobra.Command{
		Use: "calibrate", Short: "Measure how well models judge, on texts with known answers", Args: cobra.NoArgs,
		Long: "Measure how well models judge. A run of the workflow calibrate asks each judge alone about good texts and about the same texts with a\n" +
			"defect that code has put in: a dropped item, a wrong number, a rule that is not kept, filler in place of what was to be said, a line that\n" +
			"tells the judge what to answer, much polish. Each is asked in both orders of the possible answers, and ten of them once more.\n\n" +
			"Code computes the rates. A judge that passes 85 of 100 good texts may send back alone; the word of one that finds 80 of 100 defects counts\n" +
			"for passing; otherwise its word is advice. With 30 texts of each kind a rate is known to some 15 points.\n\n" +
			"--set takes a set of your own: JSON lines with subject, criterion, expected (met or not_met), and, if you like, type and defect.",
		Example: "  loopkeeper judges calibrate\n  loopkeeper judges calibrate --judge qwen3:8b --type numbers --from 'docs/*.md'\n" +
			"  loopkeeper judges calibrate --judge qwen3:8b --set reviews.jsonl\n  loopkeeper judges calibrate --run 7f3k",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.numbered = cmd.Flags().Changed("n")
			return a.calibrate(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&o.judges, "judge", nil, "`MODEL` or role that is measured; may be repeated (default the role judge)")
	f.StringVar(&o.kind, "type", "", "`TYPE` of the criteria: "+strings.Join(judges.Types(), ", ")+" (default all in turn)")
	f.StringVar(&o.set, "set", "", "take the set in this `FILE` instead of making one")
	f.StringArrayVar(&o.from, "from", nil, "make the set from the texts in these `FILES`; may be repeated")
	f.IntVar(&o.n, "n", judges.DefaultN, "make `N` good texts, and as many with a defect")
	f.Uint64Var(&o.seed, "seed", 1, "`NUMBER` that the choice of defects follows from")
	f.StringVar(&o.dump, "write-set", "", "write the set to this `FILE` and ask nobody")
	f.StringVar(&o.done, "run", "", "keep what this `RUN` has found out, instead of asking")
	o.run.register(c)
	return c
}

func (o calibrateOptions) check() error {
	switch making := o.kind != "" || len(o.from) > 0 || o.numbered; {
	case o.done != "" && (making || o.set != "" || len(o.judges) > 0 || o.dump != ""):
		return usagef("--run keeps what a run has found out: nothing else can be chosen")
	case o.set != "" && making:
		return usagef("--set is a set as it is: --type, --from and --n are for making one")
	case o.n < 1:
		return usagef("--n %d: want at least 1", o.n)
	}
	return o.run.check()
}

func (a *app) calibrate(ctx context.Context, o calibrateOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.done != "" {
		return a.withClient(ctx, func(ctx context.Context, c *client) error { return a.keepCalibration(ctx, c, o.done) })
	}
	set, err := o.subjects(ctx)
	if err != nil {
		return err
	}
	if o.dump != "" {
		return a.writeSet(o.dump, set)
	}
	return a.withClient(ctx, func(ctx context.Context, c *client) error {
		models, err := judgesToMeasure(ctx, c, o.judges)
		if err != nil {
			return err
		}
		in := map[string]any{"judges": models, "subjects": set, "again": min(askedAgain, len(set))}
		j := job{builtIn: "calibrate", input: in, models: models, key: o.run.key, limit: o.run.limit, limits: o.run.limits, place: o.run.place}
		id, err := a.start(ctx, c, j, o.run)
		if err != nil || id == "" {
			return err
		}
		r, err := a.follow(ctx, c, id, nil, destination{})
		if err != nil {
			a.next("loopkeeper judges calibrate --run " + id)
			return err
		}
		if r.GetEnded() == nil {
			return ended(r)
		}
		return a.keepCalibration(ctx, c, id)
	})
}

// askedAgain is how many subjects, half of them good, are asked about once more, to see whether a judge says the same.
const askedAgain = 20

// subjects are taken from a file, or made.
func (o calibrateOptions) subjects(ctx context.Context) ([]judges.Subject, error) {
	if o.set != "" {
		text, err := readText(o.set)
		if err != nil {
			return nil, err
		}
		set, err := judges.ReadSet(strings.NewReader(text))
		if err != nil {
			return nil, apierr.Wrap(err, apierr.InvalidArgument, "read the set %s", o.set).
				WithNext(`each line is as {"subject":"…","criterion":"…","expected":"met"}, or "not_met"`, "loopkeeper judges calibrate --write-set example.jsonl")
		}
		return set, nil
	}
	var texts []string
	if len(o.from) > 0 {
		files, err := textInputs(ctx, o.from)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			text, err := readText(f.path)
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
	}
	set, err := judges.Build(texts, judges.Plan{N: o.n, Type: o.kind, Seed: o.seed})
	if err != nil {
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "make the set").WithNext("loopkeeper judges calibrate --help", "give longer texts with --from, or none: then loopkeeper makes them")
	}
	return set, nil
}

func (a *app) writeSet(path string, set []judges.Subject) error {
	if err := mayWrite(path); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return unwritten{apierr.Wrap(err, apierr.InvalidArgument, "write the set").WithNext("--write-set FILE in a folder that you may write")}
	}
	for _, s := range set {
		if err == nil {
			err = ui.WriteJSONLine(f, s)
		}
	}
	if err = firstError(err, f.Close()); err != nil {
		return unwritten{err}
	}
	if a.json() {
		return a.printJSON(map[string]any{"file": path, "subjects": len(set)})
	}
	a.next("loopkeeper judges calibrate --set " + quote(path))
	return a.printText(fmt.Sprintf("%s: %s\n", path, ui.Plural(int64(len(set)), "subject", "subjects")))
}

// judgesToMeasure are the models that are named, or that play a role that is.
func judgesToMeasure(ctx context.Context, c *client, named []string) ([]string, error) {
	r, err := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
	if err != nil {
		return nil, err
	}
	roles := map[string][]string{}
	for _, role := range r.GetRoles() {
		roles[role.GetName()] = role.GetModels()
	}
	if len(named) == 0 {
		if named = roles[judgeRole]; len(named) == 0 {
			return nil, usageError{error: fmt.Errorf("--judge is missing: no models have the role %s in the settings", judgeRole), next: []string{"loopkeeper models", "loopkeeper config example  # shows roles"}}
		}
	}
	var out []string
	for _, name := range named {
		if models := roles[name]; models != nil {
			out = append(out, models...)
		} else {
			out = append(out, name)
		}
	}
	return distinct(out), nil
}

// keepCalibration has the coordinator compute the rates of a run and keep them, and shows them.
func (a *app) keepCalibration(ctx context.Context, c *client, id string) error {
	r, err := c.judges().KeepCalibration(ctx, &coordinatorv1.KeepCalibrationRequest{RunId: id})
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(ui.Plain(r))
	}
	for _, n := range r.GetNotes() {
		a.note("%s", ui.Line(n))
	}
	style := a.style(a.stdout)
	a.next("loopkeeper judges list", "loopkeeper show "+id)
	return a.printText(ui.Judges(style, r.GetJudges(), time.Now()) + ui.Defects(style, r.GetJudges()) + ui.JudgePairs(style, r.GetPairs()))
}
