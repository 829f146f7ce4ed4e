package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/judges"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Track is what a model's word as a judge is worth about reports of workers, each of which has one seeded defect or none.
type Track struct {
	Model     string    `json:"model"`
	Simulated bool      `json:"simulated"`
	Judged    []Judging `json:"judged"`
}

// Judging is how the model judged the reports of one author.
type Judging struct {
	Author   string            `json:"author"` // code, or the model itself
	Subjects int               `json:"subjects"`
	Rates    []judges.Measured `json:"rates"` // over all, and for each type of criteria
}

// The authors.
const (
	ByCode  = "code"
	ByModel = "the model itself"
)

// The sizes of a judge track.
const (
	reported   = 6 // numbers in a report
	askedAgain = 10
)

// Reports are what workers did in n worlds, told by code.
func Reports(n int, seed uint64) []string {
	var out []string
	for i := range n {
		out = append(out, strings.Join(append([]string{fmt.Sprintf("Report on round %d of the relay", i+1), ""}, facts(seed+uint64(i))...), "\n"))
	}
	return out
}

// facts are one sentence for each worker that was asked.
func facts(seed uint64) (lines []string) {
	t := New(FanOut, reported, seed)
	for _, r := range t.Required {
		lines = append(lines, fmt.Sprintf("- Worker %s was asked with the word %s and said that its number is %d.", r.Worker, r.Arg, t.Report[r.Worker]))
	}
	return lines
}

// Subjects are n good reports made of texts, and the same with a defect each.
func Subjects(texts []string, n int) ([]judges.Subject, error) {
	set, err := judges.Build(texts, judges.Plan{N: n, Seed: 1})
	if err != nil {
		return nil, fmt.Errorf("put defects into the reports: %w", err)
	}
	return set, nil
}

// Judges measures o.Model as a judge on o.Tasks reports with a defect and as many without; own has it judge reports that it wrote
// itself, too.
func Judges(ctx context.Context, o Options, own bool) (track Track, err error) {
	o = o.withDefaults()
	track.Model = o.Model
	if track.Simulated, err = o.look(ctx); err != nil {
		return track, err
	}
	f, err := newFloor(ctx, o)
	if err != nil {
		return track, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	j, err := f.judged(ctx, o, ByCode, Reports(o.Tasks, 1))
	if err != nil {
		return track, err
	}
	track.Judged = append(track.Judged, j)
	if !own {
		return track, nil
	}
	texts, err := f.written(ctx, o)
	if err != nil {
		return track, err
	}
	if j, err = f.judged(ctx, o, ByModel, texts); err != nil {
		return track, err
	}
	track.Judged = append(track.Judged, j)
	return track, nil
}

// written has the model write reports of its own from the facts of other worlds.
func (f *floor) written(ctx context.Context, o Options) ([]string, error) {
	p, err := script.BundleFS(files, "reports.ts")
	if err != nil {
		return nil, fmt.Errorf("bundle the workflow of the reports: %w", err)
	}
	var all []string
	for i := range o.Tasks {
		all = append(all, strings.Join(facts(uint64(1001+i)), "\n"))
	}
	id, _, err := f.carryOut(ctx, p, map[string]any{"model": o.Model, "facts": all})
	if err != nil {
		return nil, err
	}
	var texts []string
	if err := f.output(ctx, id, "result", &texts); err != nil {
		return nil, err
	}
	if texts = slices.DeleteFunc(texts, func(t string) bool { return strings.TrimSpace(t) == "" }); len(texts) == 0 {
		return nil, apierr.New(apierr.Unavailable, "%s wrote no report", o.Model)
	}
	return texts, nil
}

// judged has the model judge reports, in both orders of the possible answers, and some of them once more.
func (f *floor) judged(ctx context.Context, o Options, author string, texts []string) (Judging, error) {
	set, err := Subjects(texts, o.Tasks)
	if err != nil {
		return Judging{}, fmt.Errorf("reports by %s: %w", author, err)
	}
	p, ok := workflows.Lookup("calibrate")
	if !ok {
		return Judging{}, apierr.New(apierr.Internal, "the workflow calibrate is not built in")
	}
	id, view, err := f.carryOut(ctx, p, map[string]any{"judges": []string{o.Model}, "subjects": set, "again": min(askedAgain, len(set))})
	if err != nil {
		return Judging{}, err
	}
	var answers []judges.Answer
	if err := f.output(ctx, id, "answers of "+o.Model, &answers); err != nil {
		return Judging{}, err
	}
	for i := range answers {
		answers[i].Judge = o.Model
	}
	if !slices.ContainsFunc(answers, func(a judges.Answer) bool { return a.Failed == "" }) && len(view.Failures) > 0 {
		return Judging{}, apierr.New(apierr.Unavailable, "nothing was judged: %s", view.Failures[0].Message)
	}
	rates, _ := judges.Measure(set, answers)
	return Judging{Author: author, Subjects: len(set), Rates: rates}, nil
}

// output reads an output of a run.
func (f *floor) output(ctx context.Context, id, name string, into any) error {
	outputs, err := f.engine.Outputs(ctx, id)
	if err != nil {
		return err
	}
	for _, o := range outputs {
		if o.Name == name && o.Value != nil {
			return json.Unmarshal(o.Value, into)
		}
	}
	return apierr.New(apierr.NotFound, "the run %s has no output %s", id, name)
}

// Text is the track as tables.
func (t Track) Text() string {
	var b strings.Builder
	head := "reports by"
	if t.Simulated {
		head += " (**simulated**)"
	}
	fmt.Fprintf(&b, "| %s | criteria | passes good ones (TPR) | finds defects (TNR) | abstains | lines hold | flips in the other order | same once more | no answer |\n|---|---|%s\n", head, strings.Repeat("--:|", 7))
	for _, j := range t.Judged {
		for _, m := range j.Rates {
			kind := m.Type
			if kind == "" {
				kind = "all"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", j.Author, kind, share100(m.Passed), share100(m.Found), share100(m.Abstained), share100(m.Lines), share100(m.Flipped), share100(m.Same), share100(m.Failed))
		}
	}
	b.WriteString("\n| reports by | defect | found |\n|---|---|--:|\n")
	for _, j := range t.Judged {
		for _, m := range j.Rates {
			for _, d := range defects {
				if r, ok := m.Defects[d.name]; ok && m.Type == "" {
					fmt.Fprintf(&b, "| %s | %s | %s |\n", j.Author, d.words, share100(r))
				}
			}
		}
	}
	return b.String()
}

var defects = []struct{ name, words string }{{judges.DroppedItem, "a dropped item"}, {judges.WrongNumber, "a wrong number"}, {judges.UnmetConstraint, "a rule of form that is not kept"},
	{judges.Filler, "plausible filler"}, {judges.Polish, "one under padding"}, {judges.Injection, "one beside a planted line that says it is met"}}

func share100(r judges.Rate) string {
	if r.Of == 0 {
		return "–"
	}
	low, high := r.Interval()
	return fmt.Sprintf("%.0f %% of %d %s", 100*r.Share(), r.Of, Interval{Low: low, High: high}.bounds())
}
